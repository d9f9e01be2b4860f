"""The edge beside a bare consumer that decodes the same records, both with kafka-python in this process.

    bare consumer     polls the events topic, and parses the JSON of each record
    edge              reads the same events, holds them sealed, chooses, and sends the reports of the day

Events are those of one day, of which each person has ten: so one in ten events becomes a report. Costs are CPU seconds
of this process, so rates are those of a core; broker and Redis have others. Both take turns.

Decides whether events are read quickly enough in Python. Run it when the path from a record to the spool changes.
"""

import itertools
import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from bench._measuring import Table, broker, in_turns, own_seconds
from memo_store.store import MemoStore
from producers.edge.topic import POLL_RECORDS, EventsTopic, TopicEdge
from producers.events import Options
from producers.files import ColumnMapping
from producers.files.json_events import json_object
from producers.kafka_sink import KafkaSink
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.kafka_clients import connected
from servers.redis_server import local
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create

PEOPLE, EACH, ROUNDS = 20_000, 10, 5
OPEN_SECONDS, WANTED = 60.0, 0.25
START = datetime(2026, 1, 1, tzinfo=UTC)
KEY = b"an operator's key for benchmarks"
OPTIONS = Options(ColumnMapping("msisdn", "at", {"area": "cell"}), timedelta(hours=2))
EVENTS = "calls"


def run() -> Table:
    with broker() as (kafka, directory), local(directory / "redis") as server:
        write(kafka)
        create(kafka, Topics("bench", 4, 1))
        numbers = itertools.count()
        goes = in_turns(
            ROUNDS,
            lambda: own_seconds(lambda: consume(kafka)),
            lambda: edge(kafka, server.url, directory, f"edge-{next(numbers)}"),
        )
    table = Table("Edge: events per second and core, side by side", ("", "events/s", "of the bare consumer"))
    bare, found = (PEOPLE * EACH / seconds for seconds in goes.least)
    ratio = goes.times(1, 0)
    table.row("bare consumer", f"{bare:,.0f}", "1")
    table.row("edge", f"{found:,.0f}", str(ratio))
    if ratio.value < WANTED:
        table.missed.append(f"of the bare consumer: {ratio.value:.2f}, wanted at least {WANTED}")
    return table


def write(kafka: KafkaSettings) -> None:
    """The events of a day, in the order of time."""
    with connected(KafkaAdminClient, kafka, OPEN_SECONDS) as admin:
        admin.create_topics([NewTopic(EVENTS, 1, 1)])
    with connected(KafkaProducer, kafka, OPEN_SECONDS) as producer:
        for number in range(PEOPLE * EACH):
            person, at = f"+33{number % PEOPLE:09d}", START + number * timedelta(days=1) / (PEOPLE * EACH)
            row = {"msisdn": person, "at": at.isoformat(" ", "seconds"), "cell": f"{number % 16}"}
            producer.send(EVENTS, json.dumps(row).encode(), key=person.encode())
        producer.flush()


def consume(kafka: KafkaSettings) -> None:
    with connected(
        KafkaConsumer, kafka, OPEN_SECONDS, enable_auto_commit=False, max_poll_records=POLL_RECORDS
    ) as consumer:
        consumer.assign([TopicPartition(EVENTS, 0)])
        consumer.seek_to_beginning()
        left = PEOPLE * EACH
        while left:
            for records in consumer.poll(timeout_ms=500).values():
                left -= sum(isinstance(json.loads(record.value), dict) for record in records)


def edge(kafka: KafkaSettings, redis_url: str, directory: Path, survey: str) -> float:
    """CPU seconds of an edge of a survey of its own that reads all events, and sends their period."""
    text = (
        f"{{id: {survey}, start: {START.isoformat()}, period: 1d, clock: source, eps_inf: 2, eps_1: 1, "
        "attributes: [{name: area, range: {last: 15}}]}"
    )
    people = Respondent(Scheme(parse_survey(text)), Keyring.generate())
    events = EventsTopic(kafka, EVENTS, json_object, "utf-8", timedelta(days=1))
    with MemoStore(redis_url) as store, closing(KafkaSink(kafka, "bench.reports")) as sink:
        memos, workspace = store.survey(people), directory / survey
        with closing(TopicEdge(memos, sink, KEY, OPTIONS, events, workspace)) as one:
            seconds = own_seconds(one.take) + own_seconds(lambda: one.end(START + timedelta(days=1)))
            assert (one.state.rows, one.state.totals.reports) == (PEOPLE * EACH, PEOPLE), one.state
            return seconds
