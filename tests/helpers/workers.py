"""What workers are given to count: events of a small world, on the reports topic."""

from __future__ import annotations

from collections.abc import Iterable

from producers.sinks import KafkaSink
from protocols.scheme import Scheme
from servers.settings import KafkaSettings
from stream_app.kafka import Topics
from tests.stream_app.worlds import SCHEME, Event, deal, wire


def send(kafka: KafkaSettings, topics: Topics, events: Iterable[Event], scheme: Scheme = SCHEME) -> None:
    """Put events of a small world on the reports topic, confirmed."""
    sink = KafkaSink(kafka, topics.reports)
    for partition, dealt in enumerate(deal(events, topics.partitions)):
        for event in dealt:
            sink.send(partition, *wire(event, scheme))
    sink.flush()
    sink.close()
