"""Windows are exact, and hours, days and weeks fall where people expect them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.mobility import ByGap
from analytics.mobility.count_history import first_reports
from analytics.windows import Window
from analytics.windows.calendar import calendar_windows, comparable, same_phase
from protocols.survey import EPOCH, HOUR, Calendar, Survey
from protocols.survey_text import parse_survey

DEVICES, PERIODS, VALUES = 40, 12, 3


def _presence(seed: int, rate: float, horizon: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Who was there with which value (-1: absent), and the counters n[t, gap-1] and N[t, gap-1, value] of it."""
    random = np.random.default_rng(seed)
    present = random.random((PERIODS, DEVICES)) < rate
    values = np.where(present, random.integers(VALUES, size=present.shape), -1)
    histogram = np.zeros((PERIODS, horizon, VALUES), dtype=np.int64)
    last = np.full(DEVICES, -horizon)
    for t in range(PERIODS):
        here = np.flatnonzero(present[t])
        gaps = np.minimum(t - last[here], horizon)
        np.add.at(histogram, (t, gaps - 1, values[t, here]), 1)
        last[here] = t
    return values, histogram.sum(axis=2), histogram


def _sparse(counters: np.ndarray) -> list[ByGap]:
    """Counters `[period, gap - 1, value]` without the gaps that do not occur."""
    occurring = [(period, np.flatnonzero(period.any(axis=1))) for period in counters]
    return [ByGap(rows + 1, period[rows]) for period, rows in occurring]


@given(seed=st.integers(0, 10_000), rate=st.sampled_from([0.05, 0.3, 0.9]), horizon=st.sampled_from([1, 5, 12]))
def test_every_window_equals_a_brute_force_count(seed: int, rate: float, horizon: int) -> None:
    values, n, histogram = _presence(seed, rate, horizon)
    for start in range(PERIODS):
        for length in range(1, min(horizon, PERIODS - start) + 1):
            inside = values[start : start + length]
            seen = inside[:, (inside >= 0).any(axis=0)]
            firsts = seen[(seen >= 0).argmax(axis=0), np.arange(seen.shape[1])]
            assert np.triu(n[start : start + length]).sum() == seen.shape[1]
            by_value = np.bincount(firsts, minlength=VALUES)
            assert (first_reports(_sparse(histogram), start, length) == by_value).all()


HOURS = Calendar(EPOCH, HOUR)


def _survey(start: str, period: str, horizon: int, zone: str | None = None) -> Survey:
    terms = f"id: s, start: {start}, period: {period}, eps: 1, horizon: {horizon}"
    if zone is not None:
        terms += f", time_zone: {zone}"
    return parse_survey(f"{{{terms}, attributes: [{{name: a, values: [x, y]}}]}}")


@pytest.mark.parametrize(
    ("survey", "periods", "unit", "expected"),
    [
        (("2026-01-05T00:30:00Z", "15m", 8), 12, "hour", [(2, 5), (6, 9)]),
        (("2026-01-05T00:30:00Z", "15m", 8), 400, "day", []),  # longer than the horizon
        # A Saturday evening there, a Sunday in Greenwich: weeks begin on Monday in the survey's own time zone.
        (("2026-01-03T22:00:00-02:00", "1d", 7), 20, "week", [(2, 8), (9, 15)]),
        (("2026-01-05T00:00:00Z", "2d", 7), 10, "day", []),
        (("2026-01-05T00:00:00Z", "7h", 7), 30, "day", []),
        (("2026-03-23T00:00:00+01:00", "1d", 7, "Europe/Paris"), 20, "week", [(0, 6), (7, 13)]),  # over a clock change
        # The hour that clocks repeat is two hours; half an hour, where 02:00 becomes 01:30, is none.
        (("2026-10-25T00:00:00+02:00", "15m", 4, "Europe/Paris"), 100, "hour", [(t, t + 3) for t in range(0, 100, 4)]),
        (("2026-04-05T00:00:00+11:00", "15m", 4, "Australia/Lord_Howe"), 16, "hour", [(0, 3), (4, 7), (10, 13)]),
    ],
)
def test_windows_fall_where_the_calendar_says(
    survey: tuple[str, str, int], periods: int, unit: str, expected: list[tuple[int, int]]
) -> None:
    assert calendar_windows(_survey(*survey), range(periods), unit) == expected


@pytest.mark.parametrize(
    ("window", "known", "expected"),
    [
        (Window(200, 200), range(300), (Window(32, 32), "a week before")),
        (Window(30, 30), range(300), (Window(6, 6), "the day before")),
        (Window(5, 5), range(300), (Window(4, 4), "the window just before")),
        (Window(192, 215), range(300), (Window(24, 47), "a week before")),
        (Window(200, 200), range(180, 300), (Window(199, 199), "the window just before")),
        (Window(30, 59), range(300), (Window(0, 29), "the window just before")),  # the day before would overlap
        (Window(0, 0), range(300), None),
    ],
)
def test_a_window_is_compared_with_the_same_time_before(
    window: Window, known: range, expected: tuple[Window, str] | None
) -> None:
    assert comparable(window, HOURS, known) == expected


def test_the_baseline_is_the_same_time_of_the_week_or_else_of_the_day() -> None:
    assert same_phase(Window(340, 340), HOURS, range(336)) == [Window(4, 4), Window(172, 172)]
    assert same_phase(Window(340, 340), HOURS, range(24, 72)) == [Window(28, 28), Window(52, 52)]
    assert same_phase(Window(340, 340), HOURS, range(10, 13)) == [Window(10, 10), Window(11, 11), Window(12, 12)]


PARIS = "2026-03-23T00:00:00+01:00", "1h"  # clocks change on Sunday the 29th


def test_days_and_weeks_of_a_time_zone_have_as_many_hours_as_they_have() -> None:
    survey = _survey(*PARIS, 200, "Europe/Paris")
    days = calendar_windows(survey, range(24 * 14), "day")
    assert [day.length for day in days] == [24] * 6 + [23] + [24] * 7
    weeks = calendar_windows(survey, range(24 * 14), "week")
    assert [week.length for week in weeks] == [24 * 7 - 1, 24 * 7]
    assert calendar_windows(_survey(*PARIS, 23, "Europe/Paris"), range(24 * 8), "day") == [days[6]], "the horizon"


def test_a_day_after_a_clock_change_is_compared_with_the_same_local_day() -> None:
    survey = _survey(*PARIS, 200, "Europe/Paris")
    days = calendar_windows(survey, range(24 * 14), "day")
    assert comparable(days[9], survey.calendar, range(24 * 14)) == (days[2], "a week before")
    assert comparable(days[6], survey.calendar, range(24 * 14)) == (days[5], "the day before")
    assert same_phase(days[13], survey.calendar, range(days[0].first, days[6].last + 1)) == [days[6]]
