"""`hearsay worker` on a real broker: reports in, finals out, whatever happens to the process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from producers.sinks.kafka import KafkaSink
from protocols.settings import KafkaSettings
from stream_app.registry import publish
from stream_app.results_reader import read_finals
from stream_app.topics import Topics
from tests.helpers.eventually import eventually
from tests.helpers.recount import final_of, recount
from tests.helpers.workers import workers
from tests.stream_app.worlds import KEY, SCHEME, Event, Reports, Row, Tick, deal, wire

MakeTopics = Callable[..., Topics]


@pytest.fixture
def topics(fresh_topics: MakeTopics, kafka_settings: KafkaSettings) -> Topics:
    made = fresh_topics(partitions=3, merge_partitions=2)
    publish(kafka_settings, made, SCHEME.survey)
    return made


def send(kafka: KafkaSettings, topics: Topics, events: Iterable[Event]) -> None:
    sink = KafkaSink(kafka, topics.reports)
    for partition, dealt in enumerate(deal(events, topics.partitions)):
        for event in dealt:
            sink.send(partition, *wire(event))
    sink.flush()
    sink.close()


def crowd(period: int, size: int) -> Reports:
    return Reports(period, tuple(Row(token, token % 3 + 1, token % 3, token % 1024) for token in range(1, size)))


def test_a_worker_that_is_killed_carries_on_and_one_that_is_asked_to_leave_leaves(
    kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    """Failure would look like: a report lost, or counted again, after the kill."""
    send(kafka_settings, topics, [crowd(0, 2000), crowd(1, 1000), Tick(0), crowd(1, 1500)])
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 1, 90)
        worker.kill()
        send(kafka_settings, topics, [crowd(1, 3000), crowd(2, 500), Tick(2)])
        worker.start().wait_until_ready()
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 3, 90)
        assert worker.metric("hearsay_reports_total") > 0
        assert worker.metric("hearsay_lag_records") == 0
        assert worker.leave() == 0
    expected = recount(kafka_settings, topics)
    assert read_finals(kafka_settings, topics) == {
        ("s", period): final_of(period, counted) for period, counted in expected.finals.items()
    }
