"""When periods close: by reports if the clock is far ahead, by the clock without reports, at the ends of local days."""

from datetime import datetime
from pathlib import Path

import pytest

from stream_app.local import LocalStore
from tests.gateway.world import NOON, Moment, embedded, report, scheme, serving
from tests.helpers.eventually import eventually
from views.reading import Results

DAY, MONTH = 86_400.0, 30 * 86_400.0
AUTUMN = ("2026-10-24T00:00:00+02:00", "2026-10-26T00:00:00+01:00", 3600)


def finals(directory: Path) -> list[tuple[int, int]]:
    store = LocalStore.existing(directory)
    try:
        return [(final.period, final.n) for final in Results(store).histograms("buttons")]
    finally:
        store.close()


def test_a_clock_that_jumps_ahead_closes_nothing_and_refuses_nothing_while_reports_say_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Failure would look like: the reports of a month are late, for ever."""
    now, elapsed = Moment(), Moment(0)
    with embedded(tmp_path, now, elapsed=elapsed) as log, serving(log, now=now) as gateway:
        assert gateway.post_one(report()).status == 201
        now.value += MONTH
        eventually(lambda: "far ahead of the reports" in capsys.readouterr().out + caplog.text)
        assert [gateway.post_one(report()).status for _ in range(3)] == [201] * 3
        assert log.closed_through("buttons") == -1
    for _ in range(2):  # nor does a process that starts with such a clock
        with embedded(tmp_path, now, elapsed=elapsed) as log, serving(log, now=now) as gateway:
            assert gateway.post_one(report()).status == 201
            assert log.closed_through("buttons") == -1
    now.value = NOON + DAY
    with embedded(tmp_path, now) as log, serving(log, now=now) as gateway:
        eventually(lambda: finals(tmp_path) == [(0, 6)])
        assert gateway.post_one(report()).reason == "late"
        assert gateway.post_one(report(of_period=1)).status == 201


def test_a_survey_that_nobody_reports_to_is_closed_by_the_clock(tmp_path: Path) -> None:
    now, elapsed = Moment(), Moment(0)
    with embedded(tmp_path, now, elapsed=elapsed) as log, serving(log, now=now) as gateway:
        assert gateway.post_one(report()).status == 201
        now.value = NOON + 5 * DAY
        elapsed.value = DAY
        assert gateway.post_one(report()).status == 201
        assert log.closed_through("buttons") == -1, "the last reports show that the clock is wrong"
        elapsed.value = 3 * DAY + 1
        eventually(lambda: log.closed_through("buttons") == 4)
        eventually(lambda: finals(tmp_path) != [])


def test_a_survey_that_is_started_late_and_one_that_was_stopped_for_long_go_on_with_the_first_report(
    tmp_path: Path,
) -> None:
    now = Moment(NOON + 20 * DAY)
    with embedded(tmp_path, now) as log, serving(log, now=now) as gateway:
        assert log.closed_through("buttons") == 19
        assert gateway.post_one(report(of_period=20)).status == 201
    now.value += 40 * DAY
    with embedded(tmp_path, now) as log, serving(log, now=now) as gateway:
        assert log.closed_through("buttons") == 19
        assert [gateway.post_one(report(of_period=60)).status for _ in range(2)] == [201] * 2
        assert log.closed_through("buttons") == 59
        now.value += DAY
        eventually(lambda: (60, 2) in finals(tmp_path))
    assert finals(tmp_path)[0] == (20, 1)


# Midnight before the day before clocks change, midnight after the day of the change, and how much longer it is.
SPRING = ("2026-03-28T00:00:00+01:00", "2026-03-30T00:00:00+02:00", -3600)


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


@pytest.mark.parametrize(("start", "end", "longer"), [SPRING, AUTUMN], ids=["23 hours", "25 hours"])
def test_a_local_day_is_closed_at_its_own_end_and_not_after_24_hours(
    start: str, end: str, longer: int, tmp_path: Path
) -> None:
    """Failure would look like: reports of its last hour refused as late, or its result an hour after its end."""
    paris = scheme("time_zone: Europe/Paris,", start=start)
    grace = paris.survey.grace.total_seconds()
    assert seconds(end) - seconds(start) == 2 * 86400 + longer
    now = Moment(seconds(end) + grace - 2)
    with embedded(tmp_path, now, paris.survey) as log, serving(log, [paris], now) as gateway:
        store = LocalStore.existing(tmp_path)
        answers = [gateway.post_one(report(paris, period)).status for period in (0, 1, 1, 2)]
        assert answers == [422, 201, 201, 201], "the first day is closed, the second one is still in its grace"
        assert Results(store).histograms(paris.survey.id) == []
        now.value = seconds(end) + grace
        eventually(lambda: Results(store).histograms(paris.survey.id) != [])
        assert gateway.post_one(report(paris, 1)).reason == "late"
        assert [(final.period, final.n) for final in Results(store).histograms(paris.survey.id)] == [(1, 2)]
