"""What workers are given to count: events of a small world, on the reports topic."""

from collections.abc import Iterable

from producers.sinks import KafkaSink
from protocols.scheme import Scheme
from servers.settings import KafkaSettings
from stream_app.counting.state import Position
from stream_app.kafka import Topics, read_topic
from tests.stream_app.worlds import SCHEME, Event, deal, wire

PATIENT = ("--session", "10")
"""A worker that stands still for some seconds stays in its group: otherwise it would begin again, and what it had not
noted as written yet would be written and logged twice. After a kill, the next worker waits as long for its partitions.
"""


def send(kafka: KafkaSettings, topics: Topics, events: Iterable[Event], scheme: Scheme = SCHEME) -> None:
    """Put events of a small world on the reports topic, confirmed."""
    sink = KafkaSink(kafka, topics.reports)
    for partition, dealt in enumerate(deal(events, topics.partitions)):
        for event in dealt:
            sink.send(partition, *wire(event, scheme))
    sink.flush()
    sink.close()


def caught_up(kafka: KafkaSettings, topics: Topics, through: dict[int, int] | None = None) -> bool:
    """Whether everything on the reports topic, or what is there through some offsets, is in the state.

    Counters may be behind it: what they lack is read again after a crash.
    """
    ends = dict.fromkeys(range(topics.partitions), -1) | (through or {})
    for record in read_topic(kafka, topics.reports) if through is None else ():
        ends[record.partition] = record.offset
    held = dict.fromkeys(range(topics.partitions), -1)
    for record in read_topic(kafka, topics.counting_changelog):
        if b"position" in record.key and record.value:
            held[record.partition] = Position.decode(record.value).offset
    return all(held[partition] >= end for partition, end in ends.items())  # markers of transactions come after records
