"""Kills, releases side by side, any number of partitions and workers: the finals are those of an offline recount."""

import time
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random

import pytest

from bench._processes import WorkerProcess, workers
from protocols.scheme import Scheme
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.finals import FinalKey
from stream_app.kafka import KafkaMessages, Topics, publish
from stream_app.log.codec import VERSION
from tests.helpers.eventually import eventually
from tests.helpers.gateways import endure
from tests.helpers.ordeal import Ordeal
from tests.helpers.published import read_finals
from tests.helpers.recount import histograms_of, recount
from tests.helpers.traffic import a_row
from tests.helpers.workers import send
from tests.stream_app.worlds import CALENDAR, KEY, SCHEME, Event, Garbage, Reports, Row, Tick, by_calendar, deal, wire
from views.local import collector
from views.reading import Messages, Results
from views.results import HISTOGRAMS, MOBILITY

MakeTopics = Callable[..., Topics]
BACK_OFF_SECONDS = 10.0
"""Supervisors start what ends at once less and less often. Without it, the group would only rebalance."""
REFUSED = f"the state has version {VERSION + 1}, and this release reads versions up to {VERSION}"
PERIODS = 5


@pytest.mark.long(part="kills")
def test_finals_are_exact_through_kills_pauses_stops_and_broker_crashes(
    kafka: KafkaBroker, fresh_topics: MakeTopics, tmp_path: Path
) -> None:
    """Failure would look like: a period whose counts are off by the reports of some flush, or a final that differs
    between two publications, or a rejected record that is counted twice or is missing from the dead letters."""
    topics = fresh_topics(partitions=6, merge_partitions=2)
    Ordeal(kafka, topics, tmp_path, seed=1).run(reports=120_000, periods=7, faults=5)


class NextRelease(WorkerProcess):
    """A worker of a release that writes the next version of the state, and reads this one too."""

    program = ("-c", "from stream_app.log import codec; codec.VERSION += 1; from hearsay.cli import main; main()")


def period(number: int) -> list[Event]:
    return [Reports(number, tuple(Row(token) for token in range(1 + number, 200 + number))), Tick(number)]


@pytest.mark.long(part="cluster")
@pytest.mark.parametrize("first", [WorkerProcess, NextRelease])
def test_two_releases_side_by_side_count_every_report_once_or_one_of_them_refuses(
    first: type[WorkerProcess],
    kafka_settings: KafkaSettings,
    fresh_topics: Callable[..., Topics],
    tmp_path: Path,
) -> None:
    """Failure would look like: a final that an older release made from a state it does not understand."""
    topics = fresh_topics(partitions=2, merge_partitions=1)
    publish(kafka_settings, topics, SCHEME.survey)
    second = NextRelease if first is WorkerProcess else WorkerProcess
    group = [kind(kafka_settings, topics, KEY, tmp_path / f"{kind.__name__}.log") for kind in (first, second)]
    older, newer = sorted(group, key=lambda worker: isinstance(worker, NextRelease))

    started: dict[WorkerProcess, float] = {}

    def restart(some: list[WorkerProcess]) -> None:
        for worker in some:
            if not worker.running and time.monotonic() - started.get(worker, -inf) > BACK_OFF_SECONDS:
                started[worker] = time.monotonic()
                worker.start()

    def closed(number: int, some: list[WorkerProcess], ready: WorkerProcess) -> None:
        """A period is sent, closed, and becomes final, while whoever has ended is started again."""
        eventually(lambda: restart(some) or ready.ready, 180)
        send(kafka_settings, topics, period(number))
        eventually(lambda: restart(some) or len(read_finals(kafka_settings, topics)) == number + 1, 180)

    try:
        closed(0, group[:1], group[0])
        for number in range(1, 4):
            closed(number, group, newer)
        newer.kill()
        if not older.running:
            older.start()
        send(kafka_settings, topics, period(4))
        eventually(lambda: not older.running)
        assert REFUSED in older.log.read_text()
        assert len(read_finals(kafka_settings, topics)) == 4, "an older release alone makes nothing of it"
        newer.start()
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 5)
    finally:
        for worker in group:
            if worker.running:
                worker.kill()
    assert read_finals(kafka_settings, topics) == histograms_of(recount(kafka_settings, topics))


def some_events() -> list[Event]:
    """Reports of a few periods, some of them twice, some late, some garbage; of devices that may come again."""
    random = Random(3)
    events: list[Event] = []
    for period in range(PERIODS):
        tokens = random.sample(range(1, 1000), 400)
        reports = Reports(period, tuple(replace(a_row(random, 0, 1), token=token) for token in tokens))
        late = Reports(max(0, period - 1), tuple(a_row(random, 0, 1) for _ in range(20)))
        events += [reports, Garbage(random.randbytes(40)), Reports(period, reports.rows[:50]), late, Tick(period)]
    return events


def results_in(store: Messages) -> list[dict[FinalKey, bytes]]:
    return [Results(store).values(topic) for topic in (HISTOGRAMS, MOBILITY)]


def embedded(directory: Path, logs: dict[Scheme, list[Event]]) -> list[dict[FinalKey, bytes]]:
    with collector(directory, [scheme.survey for scheme in logs], KEY, KEY, partitions=2) as app:
        for scheme, events in logs.items():
            for partition, dealt in enumerate(deal(events, 2)):
                for event in dealt:
                    app.send(partition, *wire(event, scheme))
        app.flush()
        return results_in(app.store)


def test_partitions_workers_and_replay_do_not_show_in_the_finals(
    kafka_settings: KafkaSettings, fresh_topics: MakeTopics, tmp_path: Path
) -> None:
    events = some_events()
    logs = {SCHEME: events, CALENDAR: by_calendar(events)}
    expected = embedded(tmp_path / "embedded", logs)
    assert len(expected[0]) == len(expected[1]) == 2 * PERIODS
    for partitions, count, live in ((1, 1, False), (3, 3, True), (8, 1, False)):
        topics = fresh_topics(partitions=partitions, merge_partitions=2)
        for scheme in logs:
            publish(kafka_settings, topics, scheme.survey)
            if not live:
                send(kafka_settings, topics, logs[scheme], scheme)
        with workers(count, kafka_settings, topics, KEY, tmp_path) as group:
            if live:
                for worker in group:
                    worker.wait_until_ready()
                for number in range(len(events)):
                    for scheme in logs:
                        send(kafka_settings, topics, [logs[scheme][number]], scheme)
            eventually(lambda topics=topics: len(read_finals(kafka_settings, topics)) == 2 * PERIODS)
            for worker in group:
                worker.leave()
        found = results_in(KafkaMessages(kafka_settings, topics))
        assert found == expected, f"{partitions} partitions, {count} workers"


@pytest.mark.long(part="kills")
def test_what_two_gateways_confirmed_is_counted_once_through_kills_of_everything(
    kafka: KafkaBroker, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """Failure would look like: a confirmed report that is not on the topic, or a final that differs from a recount."""
    topics = fresh_topics(partitions=3, merge_partitions=1)
    endure(kafka, topics, tmp_path, reports=1500, clients=10, kills=3)
