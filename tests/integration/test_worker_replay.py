"""Same input, any number of partitions and workers, live or replayed: the same finals, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from lab.worker_process import workers
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.traffic import a_row
from tests.helpers.workers import send
from tests.stream_app.worlds import KEY, SCHEME, Event, Garbage, Reports, Tick, deal, wire
from views.local import collector

MakeTopics = Callable[..., Topics]
PERIODS = 5


def some_events() -> list[Event]:
    """Reports of a few periods, some of them twice, some late, some garbage."""
    random = Random(3)
    events: list[Event] = []
    for period in range(PERIODS):
        reports = Reports(period, tuple(a_row(random, 0, 1) for _ in range(400)))
        late = Reports(max(0, period - 1), tuple(a_row(random, 0, 1) for _ in range(20)))
        events += [reports, Garbage(random.randbytes(40)), Reports(period, reports.rows[:50]), late, Tick(period)]
    return events


def embedded(directory: Path, events: list[Event]) -> list[bytes]:
    with collector(directory, [SCHEME.survey], KEY, KEY, partitions=2) as app:
        for partition, dealt in enumerate(deal(events, 2)):
            for event in dealt:
                app.send(partition, *wire(event))
        app.flush()
        return [message.value for message in app.store.messages("histograms")]


def test_partitions_workers_and_replay_do_not_show_in_the_finals(
    kafka_settings: KafkaSettings, fresh_topics: MakeTopics, tmp_path: Path
) -> None:
    events = some_events()
    expected = embedded(tmp_path / "embedded", events)
    assert len(expected) == PERIODS
    for partitions, count, live in ((1, 1, False), (3, 3, True), (8, 1, False)):
        topics = fresh_topics(partitions=partitions, merge_partitions=2)
        publish(kafka_settings, topics, SCHEME.survey)
        if not live:
            send(kafka_settings, topics, events)
        with workers(count, kafka_settings, topics, KEY, tmp_path) as group:
            if live:
                for worker in group:
                    worker.wait_until_ready()
                for event in events:
                    send(kafka_settings, topics, [event])
            eventually(lambda topics=topics: len(read_finals(kafka_settings, topics)) == PERIODS)
            for worker in group:
                worker.leave()
        assert [*read_finals(kafka_settings, topics).values()] == expected, f"{partitions} partitions, {count} workers"
