"""Windows fall where people expect hours, days and weeks to fall."""

from __future__ import annotations

from datetime import timedelta

import pytest

from analytics.windows import Window
from analytics.windows.calendar import calendar_windows, comparable, same_phase
from protocols.survey import Survey
from protocols.survey_text import parse_survey

HOUR = timedelta(hours=1)


def _survey(start: str, period: str, horizon: int) -> Survey:
    terms = f"id: s, start: {start}, period: {period}, eps: 1, horizon: {horizon}"
    return parse_survey(f"{{{terms}, attributes: [{{name: a, values: [x, y]}}]}}")


def test_quarters_of_an_hour_make_whole_hours() -> None:
    survey = _survey("2026-01-05T00:30:00Z", "15m", 8)
    assert calendar_windows(survey, range(12), "hour") == [Window(2, 5), Window(6, 9)]
    assert calendar_windows(survey, range(400), "day") == [], "a day is longer than the horizon"


def test_weeks_begin_on_monday_in_the_surveys_own_time_zone() -> None:
    survey = _survey("2026-01-03T22:00:00-02:00", "1d", 7)  # a Saturday evening there, a Sunday in Greenwich
    assert calendar_windows(survey, range(20), "week") == [Window(2, 8), Window(9, 15)]


def test_periods_longer_than_a_unit_have_no_such_windows() -> None:
    assert calendar_windows(_survey("2026-01-05T00:00:00Z", "2d", 7), range(10), "day") == []


def test_periods_that_do_not_fill_a_day_make_no_days() -> None:
    assert calendar_windows(_survey("2026-01-05T00:00:00Z", "7h", 7), range(30), "day") == []


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
    assert comparable(window, HOUR, known) == expected


def test_the_baseline_is_the_same_time_of_the_week_or_else_of_the_day() -> None:
    assert same_phase(Window(340, 340), HOUR, range(336)) == [Window(4, 4), Window(172, 172)]
    assert same_phase(Window(340, 340), HOUR, range(24, 72)) == [Window(28, 28), Window(52, 52)]
    assert same_phase(Window(340, 340), HOUR, range(10, 13)) == [Window(10, 10), Window(11, 11), Window(12, 12)]
