"""Workers on a real broker: kills, wall clocks, lost records; and finals that are exact whatever happens."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition

from bench._processes import WorkerProcess
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import MAX_ROWS
from servers.kafka_broker import KafkaBroker
from stream_app.log.codec import VERSION
from tests.helpers.counting import PATIENT, Counting, NewCounting
from tests.helpers.eventually import eventually
from tests.helpers.gateways import endure
from tests.helpers.ordeal import Ordeal
from tests.helpers.recount import histograms_of, recount
from tests.stream_app.worlds import CALENDAR, KEY, SCHEME, Event, Reports, Row, Tick, by_calendar
from views.results import MOBILITY


@pytest.fixture
def counting(new_counting: NewCounting) -> Counting:
    return new_counting(SCHEME, partitions=3, merge_partitions=2)


def crowd(period: int, size: int) -> Reports:
    return Reports(period, tuple(Row(token, token % 3 + 1, token % 3, token % 1024) for token in range(1, size)))


def test_a_worker_that_is_killed_carries_on_and_one_that_is_asked_to_leave_leaves(counting: Counting) -> None:
    """Failure would look like: a report lost, or counted again, after the kill; or a device twice in a week."""
    before, after = [crowd(0, 2000), crowd(1, 1000), Tick(0), crowd(1, 1500)], [crowd(1, 3000), crowd(2, 500), Tick(2)]
    flagged = by_calendar([*before, *after])
    counting.publish(CALENDAR)
    counting.send(before)
    counting.send(flagged[:4], CALENDAR)
    with counting.workers() as (worker,):
        counting.until_final(2)
        worker.kill()
        counting.send(after)
        counting.send(flagged[4:], CALENDAR)
        worker.start().wait_until_ready()
        counting.until_final(6)
        eventually(lambda: worker.metric("hearsay_reports_total") > 0)  # once the position is written, too
        eventually(lambda: worker.metric("hearsay_lag_records") == 0)
        assert worker.leave() == 0
        assert len(worker.logged("leaving")) == 1, "every line of the log is JSON"
    expected, finals = recount(counting), counting.finals()
    assert {key: final for key, final in finals.items() if key.survey == "s"} == histograms_of(expected)
    units, came = dict[str, tuple[int, int]](), [set(range(1, size)) for size in (2000, 3000, 500)]
    for report in counting.results.read(MOBILITY, "c"):
        for window in report.windows:
            everybody = set().union(*came[window.first : window.last + 1])
            assert window.visitors is not None and window.visitors.value == len(everybody)
            assert window.new is not None
            assert window.new.value == len(everybody.difference(*came[: window.first]))
            units[window.kind] = window.first, window.last
    assert units == {"period": (2, 2), "week": (0, 1), "month so far": (1, 2), "ever": (0, 2)}


def test_surveys_on_the_wall_clock_are_closed_at_end_plus_grace(new_counting: NewCounting) -> None:
    """Workers close periods, so what is sent before there is one is in time, however long anything takes."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    terms = SCHEME.survey.model_dump() | {"clock": "wall", "start": now, "period": "6s", "grace": "1s"}
    wall = Scheme(Survey.model_validate(terms))
    counting = new_counting(wall, partitions=3, merge_partitions=2)
    counting.send([crowd(0, 100), crowd(1, 50)], wall)
    with counting.workers() as (worker,):
        counting.until_final(2)
        assert datetime.now(UTC) >= wall.survey.bounds(1)[1] + wall.survey.grace
        assert worker.leave() == 0
    assert counting.counted()[:2] == [99, 49]


@pytest.mark.long(part="cluster")
def test_a_worker_waits_for_a_broker_that_is_away_goes_on_and_leaves_also_without_it(
    kafka: KafkaBroker, counting: Counting
) -> None:
    counting.send([crowd(0, 500)])
    with counting.workers() as (worker,):
        worker.wait_until_ready()
        kafka.stop()
        before, began = len(worker.log.read_text().splitlines()), time.monotonic()
        late_one = replace(counting, directory=counting.directory / "late")
        with late_one.workers() as (late,):  # starts with no broker at all
            eventually(lambda: late.logged("waiting for the broker") != [])
            kafka.start()
            counting.send([crowd(0, 1000), Tick(0)])
            counting.until_final(1)
            assert worker.running and late.running
        lines, seconds = len(worker.log.read_text().splitlines()) - before, time.monotonic() - began
        assert lines < 100 + 5 * seconds, "the libraries repeat the same lines, dozens of times a second"
        counting.send([crowd(1, 500)])
        kafka.stop()
        assert worker.leave() == 0
    kafka.start()
    assert counting.counted() == [999]


def test_records_that_the_log_no_longer_has_are_named_and_are_in_the_shortfall_of_their_periods(
    counting: Counting,
) -> None:
    counting.send([crowd(0, 100)] * 3)
    admin = KafkaAdminClient(**counting.kafka.client_options())
    admin.delete_records({TopicPartition(counting.topics.reports, 1): 2})
    admin.close()
    with counting.workers(1, *PATIENT) as (worker,):
        counting.send([Tick(0)])
        counting.until_final(1)
        eventually(lambda: worker.metric("hearsay_lost_reports") == 2 * MAX_ROWS)
        assert worker.leave() == 0
    (entry,) = worker.logged("records are missing")
    assert "partition 1: offsets 0 to 1 are no longer in the log" in str(entry["what"])
    assert str(entry["what"]).endswith("of these periods: s 0, s 1")
    assert counting.lost() == ((0, 2, 2 * MAX_ROWS),)


BACK_OFF_SECONDS = 10.0
"""Supervisors start what ends at once less and less often. Without it, the group would only rebalance."""
REFUSED = f"the state has version {VERSION + 1}, and this release reads versions up to {VERSION}"
PERIODS = 5


@pytest.mark.long(part="kills")
def test_finals_are_exact_through_kills_pauses_stops_and_broker_crashes(
    kafka: KafkaBroker, new_counting: NewCounting
) -> None:
    """Failure would look like: a period whose counts are off by the reports of some flush, or a final that differs
    between two publications, or a rejected record that is counted twice or is missing from the dead letters."""
    Ordeal(kafka, new_counting(partitions=6, merge_partitions=2), seed=1).run(reports=120_000, periods=7, faults=5)


class NextRelease(WorkerProcess):
    """A worker of a release that writes the next version of the state, and reads this one too."""

    program = (
        "-c",
        "from stream_app.log import codec; codec.VERSION += 1; codec.COMMON = codec.VERSION; "
        "from hearsay.cli import main; main()",
    )


class Faulty(WorkerProcess):
    """A worker with a bug that shows when reports of the survey `c` are counted, after some of it is in memory."""

    program = (
        "-c",
        "from stream_app.counting.counters import PeriodCounts\n"
        "count = PeriodCounts.count\n"
        "PeriodCounts.count = lambda self, frame: (count(self, frame), 1 / (frame.survey != 'c'))\n"
        "from hearsay.cli import main; main()",
    )


@pytest.mark.long(part="cluster")
def test_an_error_with_one_survey_quarantines_it_in_a_running_worker_and_it_is_exact_once_it_goes_on(
    counting: Counting,
) -> None:
    """Failure would look like: a worker that ends, a survey that waits for another, or reports that count twice."""
    counting.publish(CALENDAR)
    events: list[Event] = [crowd(0, 2000), crowd(1, 1000), Tick(0), crowd(1, 1500), Tick(1)]
    with Faulty(counting.kafka, counting.topics, KEY, counting.directory / "faulty.log").serving() as faulty:
        counting.send(events)
        counting.send(by_calendar(events), CALENDAR)
        eventually(lambda: len(counting.finals()) == 2 or not faulty.running)
        eventually(lambda: faulty.metric("hearsay_survey_quarantined") == 3)
        assert faulty.leave() == 0
    assert counting.recover("--survey", "c").returncode == 0
    with counting.workers() as (worker,):
        counting.until_final(4)
        assert worker.leave() == 0
    assert counting.counted("s") == counting.counted("c") == [1999, 1499]


def period(number: int) -> list[Event]:
    return [Reports(number, tuple(Row(token) for token in range(1 + number, 200 + number))), Tick(number)]


@pytest.mark.long(part="cluster")
@pytest.mark.parametrize("first", [WorkerProcess, NextRelease])
def test_two_releases_side_by_side_count_every_report_once_or_one_of_them_refuses(
    first: type[WorkerProcess], new_counting: NewCounting, tmp_path: Path
) -> None:
    """Failure would look like: a final that an older release made from a state it does not understand."""
    counting = new_counting(SCHEME, partitions=2, merge_partitions=1)
    second = NextRelease if first is WorkerProcess else WorkerProcess
    group = [kind(counting.kafka, counting.topics, KEY, tmp_path / f"{kind.__name__}.log") for kind in (first, second)]
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
        counting.send(period(number))
        eventually(lambda: restart(some) or len(counting.finals()) == number + 1, 180)

    try:
        closed(0, group[:1], group[0])
        for number in range(1, 4):
            closed(number, group, newer)
        newer.kill()
        if not older.running:
            older.start()
        counting.send(period(4))
        eventually(lambda: not older.running)
        assert REFUSED in older.log.read_text()
        assert len(counting.finals()) == 4, "an older release alone makes nothing of it"
        newer.start()
        counting.until_final(5)
    finally:
        for worker in group:
            if worker.running:
                worker.kill()
    assert counting.finals() == histograms_of(recount(counting))


@pytest.mark.long(part="kills")
def test_what_two_gateways_confirmed_is_counted_once_through_kills_of_everything(
    kafka: KafkaBroker, new_counting: NewCounting
) -> None:
    """Failure would look like: a confirmed report that is not on the topic, or a final that differs from a recount."""
    endure(kafka, new_counting(partitions=3, merge_partitions=1), reports=1500, clients=10, kills=3)
