"""A clock that is far ahead does not close what has not happened yet; a survey without reports is closed anyway."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_app.local import LocalStore
from tests.gateway.world import NOON, Moment, embedded, report, serving
from tests.helpers.eventually import eventually
from views.reading import Results

DAY, MONTH = 86_400.0, 30 * 86_400.0


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
