"""Workers on a real broker: kills, wall clocks, lost records; and finals that are exact whatever happens."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from random import Random

import pytest
from kafka import KafkaAdminClient, TopicPartition

from bench._processes import WorkerProcess, workers
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import MAX_ROWS
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
from tests.helpers.workers import PATIENT, send
from tests.stream_app.worlds import CALENDAR, KEY, SCHEME, Event, Garbage, Reports, Row, Tick, by_calendar, deal, wire
from views.local import collector
from views.reading import Messages, Results
from views.results import HISTOGRAMS, MOBILITY

MakeTopics = Callable[..., Topics]


@pytest.fixture
def topics(fresh_topics: MakeTopics, kafka_settings: KafkaSettings) -> Topics:
    made = fresh_topics(partitions=3, merge_partitions=2)
    publish(kafka_settings, made, SCHEME.survey)
    return made


def crowd(period: int, size: int) -> Reports:
    return Reports(period, tuple(Row(token, token % 3 + 1, token % 3, token % 1024) for token in range(1, size)))


def test_a_worker_that_is_killed_carries_on_and_one_that_is_asked_to_leave_leaves(
    kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    """Failure would look like: a report lost, or counted again, after the kill; or a device twice in a week."""
    before, after = [crowd(0, 2000), crowd(1, 1000), Tick(0), crowd(1, 1500)], [crowd(1, 3000), crowd(2, 500), Tick(2)]
    flagged = by_calendar([*before, *after])
    publish(kafka_settings, topics, CALENDAR.survey)
    send(kafka_settings, topics, before)
    send(kafka_settings, topics, flagged[:4], CALENDAR)
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 2)
        worker.kill()
        send(kafka_settings, topics, after)
        send(kafka_settings, topics, flagged[4:], CALENDAR)
        worker.start().wait_until_ready()
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 6)
        eventually(lambda: worker.metric("hearsay_reports_total") > 0)  # once the position is written, too
        eventually(lambda: worker.metric("hearsay_lag_records") == 0)
        assert worker.leave() == 0
        assert len(worker.logged("leaving")) == 1, "every line of the log is JSON"
    expected, finals = recount(kafka_settings, topics), read_finals(kafka_settings, topics)
    assert {key: final for key, final in finals.items() if key.survey == "s"} == histograms_of(expected)
    units, came = dict[str, tuple[int, int]](), [set(range(1, size)) for size in (2000, 3000, 500)]
    for report in Results(KafkaMessages(kafka_settings, topics)).read(MOBILITY, "c"):
        for window in report.windows:
            everybody = set().union(*came[window.first : window.last + 1])
            assert window.visitors is not None and window.visitors.value == len(everybody)
            assert window.new is not None
            assert window.new.value == len(everybody.difference(*came[: window.first]))
            units[window.kind] = window.first, window.last
    assert units == {"period": (2, 2), "week": (0, 1), "month so far": (1, 2), "ever": (0, 2)}


def test_surveys_on_the_wall_clock_are_closed_at_end_plus_grace(
    kafka_settings: KafkaSettings, fresh_topics: MakeTopics, tmp_path: Path
) -> None:
    """Workers close periods, so what is sent before there is one is in time, however long anything takes."""
    topics = fresh_topics(partitions=3, merge_partitions=2)
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    terms = SCHEME.survey.model_dump() | {"clock": "wall", "start": now, "period": "6s", "grace": "1s"}
    wall = Scheme(Survey.model_validate(terms))
    publish(kafka_settings, topics, wall.survey)
    send(kafka_settings, topics, [crowd(0, 100), crowd(1, 50)], wall)
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        eventually(lambda: len(read_finals(kafka_settings, topics)) >= 2)
        assert datetime.now(UTC) >= wall.survey.bounds(1)[1] + wall.survey.grace
        assert worker.leave() == 0
    finals = Results(KafkaMessages(kafka_settings, topics)).histograms("s")
    assert [final.n for final in finals[:2]] == [99, 49]


@pytest.mark.long(part="cluster")
def test_a_worker_waits_for_a_broker_that_is_away_goes_on_and_leaves_also_without_it(
    kafka: KafkaBroker, kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    send(kafka_settings, topics, [crowd(0, 500)])
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        worker.wait_until_ready()
        kafka.stop()
        before, began = len(worker.log.read_text().splitlines()), time.monotonic()
        with workers(1, kafka_settings, topics, KEY, tmp_path / "late") as (late,):  # starts with no broker at all
            eventually(lambda: late.logged("waiting for the broker") != [])
            kafka.start()
            send(kafka_settings, topics, [crowd(0, 1000), Tick(0)])
            eventually(lambda: len(read_finals(kafka_settings, topics)) == 1)
            assert worker.running and late.running
        lines, seconds = len(worker.log.read_text().splitlines()) - before, time.monotonic() - began
        assert lines < 100 + 5 * seconds, "the libraries repeat the same lines, dozens of times a second"
        send(kafka_settings, topics, [crowd(1, 500)])
        kafka.stop()
        assert worker.leave() == 0
    kafka.start()
    assert [final.n for final in Results(KafkaMessages(kafka_settings, topics)).histograms("s")] == [999]


def test_records_that_the_log_no_longer_has_are_named_and_are_in_the_shortfall_of_their_periods(
    kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    send(kafka_settings, topics, [crowd(0, 100)] * 3)
    admin = KafkaAdminClient(**kafka_settings.client_options())
    admin.delete_records({TopicPartition(topics.reports, 1): 2})
    admin.close()
    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        send(kafka_settings, topics, [Tick(0)])
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 1)
        eventually(lambda: worker.metric("hearsay_lost_reports") == 2 * MAX_ROWS)
        assert worker.leave() == 0
    (entry,) = worker.logged("records are missing")
    assert "partition 1: offsets 0 to 1 are no longer in the log" in str(entry["what"])
    assert str(entry["what"]).endswith("of these periods: s 0, s 1")
    live = Results(KafkaMessages(kafka_settings, topics)).live("s")
    assert live is not None and live.lost == ((0, 2, 2 * MAX_ROWS),)


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


@pytest.mark.long(part="cluster")
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
