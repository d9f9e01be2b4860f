"""Which windows contain a period, by the terms and the calendar alone.

calendar units     surveys with `visitors`: their own. Surveys by gaps that have noise: whole days and weeks
rolling windows    surveys by gaps that have noise: the last N days
since              surveys by gaps with exact numbers: all periods since one with which some window begins
"""

from typing import NamedTuple

from analytics.windows.calendar import UNITS, Window, calendar_windows, unit_begins
from protocols.survey import DAY, CalendarVisits, RollingWindow, Survey, units_of_release

LONGEST_TRIANGLE = 31
SINCE = "since"
"""The series of sums that several windows share: all those that begin with the same period."""
STILL_OPEN = 1 << 62


class Span(NamedTuple):
    """A run of periods whose visitors are added up: its series, and its first and its last period.

    `answered` says whether windows that begin so have answers.
    """

    series: str
    first: int
    last: int
    answered: bool = True


def spans_of(survey: Survey, period: int) -> list[Span]:
    """The spans that contain a period, shortest series first."""
    visits = survey.visits
    if isinstance(visits, CalendarVisits):
        # With noise, all who ever came are a sum of released numbers: their exact number is not needed.
        counted = [unit for unit in visits.units if unit != "ever" or survey.presence_epsilon is None]
        return [Span(unit, visits.first(unit, period), visits.last(unit, period), unit != "ever") for unit in counted]
    if survey.presence_epsilon is None:
        answered = answered_firsts(survey, period)
        return [Span(SINCE, first, STILL_OPEN, first in answered) for first in open_firsts(survey, period)]
    found = []
    for unit in units_of_release((), survey.horizon, survey.period):
        window = unit_around(survey, unit, period)
        if window is not None:
            found.append(Span(unit, *window))
    for rolling in survey.released.rolling:
        found += [Span(rolling.name, *window, answered=False) for window in rolling_around(survey, rolling, period)]
    return found


def unit_around(survey: Survey, unit: str, period: int) -> Window | None:
    """The whole day or week that contains a period; None where it does not fit into the horizon, or began before."""
    longest = UNITS[unit] // survey.period + 2  # an hour more where clocks change, and the border
    near = range(max(0, period - longest), period + longest)
    windows = calendar_windows(survey, near, unit)
    return next((window for window in windows if window.first <= period <= window.last), None)


def rolling_around(survey: Survey, rolling: RollingWindow, period: int) -> list[Window]:
    """The rolling windows that contain a period, from the first that is whole on.

    They end with a day: every `every` days, counted from the first whole day of the survey. With periods of several
    days, they end with a period.

    >>> from protocols.survey_text import parse_survey
    >>> survey = parse_survey('''{id: s, start: 2026-01-05T00:00:00Z, period: 1d, eps: 1, horizon: 31,
    ...                           attributes: [{name: a, values: [x, y]}]}''')
    >>> rolling_around(survey, RollingWindow(7, 3), 8)
    [Window(first=2, last=8), Window(first=5, last=11), Window(first=8, last=14)]
    """
    begins = _step_begins(survey, period, rolling)
    found = []
    for last_step in range(len(begins) - 1):
        first_step = last_step - _steps(survey, rolling.days) + 1
        ends_here = (begins[0].number + last_step + 1) % _steps(survey, rolling.every) == 0
        if first_step < 0 or not ends_here:
            continue
        window = Window(begins[first_step].period, begins[last_step + 1].period - 1)
        if window.first <= period <= window.last and window.length <= survey.horizon:
            found.append(window)
    return found


class _Step(NamedTuple):
    """A day, or a longer period: its number since the survey began, and the period with which it begins."""

    number: int
    period: int


def _steps(survey: Survey, days: int) -> int:
    """The number of steps in this number of days."""
    return days * DAY // max(survey.period, DAY)


def _step_begins(survey: Survey, period: int, rolling: RollingWindow) -> list[_Step]:
    """The steps from the first one that shares a rolling window with a period to the one after the last."""
    reach = _steps(survey, rolling.days)
    if survey.period >= DAY:
        return [_Step(at, at) for at in range(max(0, period - reach + 1), period + reach + 1)]
    a_day = DAY // survey.period
    calendar, first_day = survey.calendar, survey.calendar.day(0)
    if not unit_begins(survey, range(1), "day"):
        first_day += 1
    near = range(max(0, period - (reach + 1) * (a_day + 1)), period + (reach + 1) * (a_day + 1))
    return [_Step(int(calendar.day(at)) - first_day, at) for at in unit_begins(survey, near, "day")]


def open_firsts(survey: Survey, period: int) -> list[int]:
    """With which periods windows begin that may end with a period, or later: hours, days, weeks, runs, cumulative."""
    near = range(max(0, period - survey.horizon + 1), period + 1)
    days = unit_begins(survey, near, "day")
    firsts = {period, *days[-LONGEST_TRIANGLE:]}
    if near.start == 0:
        firsts.update(days[:1])  # the days since the beginning
    if not triangle_by_day(survey):
        firsts.update(near[-LONGEST_TRIANGLE:])
    hour = unit_around(survey, "hour", period)
    if hour is not None:
        firsts.add(hour.first)
    return sorted(firsts)


def answered_firsts(survey: Survey, period: int) -> set[int]:
    """With which periods hours, days, weeks, or the days since the beginning begin, that contain a period."""
    units = (unit_around(survey, unit, period) for unit in UNITS)
    firsts = {window.first for window in units if window is not None}
    if period < survey.horizon:
        firsts.update(unit_begins(survey, range(period + 1), "day")[:1])
    return firsts


def triangle_by_day(survey: Survey) -> bool:
    """Whether the triangle is of days; of periods, where the horizon is shorter than two whole days.

    It depends on the survey alone, so that the triangles of successive reports fit together.
    """
    return not DAY % survey.period and 2 * DAY // survey.period <= survey.horizon


def triangle_windows(survey: Survey, periods: range) -> list[Window]:
    """Every run of the last days up to the horizon, or of the last periods."""
    by_day = triangle_by_day(survey)
    steps = calendar_windows(survey, periods, "day") if by_day else [Window(t, t) for t in periods]
    steps = steps[-LONGEST_TRIANGLE:]
    runs = [Window(begin.first, end.last) for place, begin in enumerate(steps) for end in steps[place:]]
    return [run for run in runs if run.length <= survey.horizon]


def standard_windows(survey: Survey, periods: range) -> dict[Window, str]:
    """Every period, whole hours, days and weeks, and the days since the beginning: each with its kind."""
    kinds: dict[Window, str] = {Window(t, t): "period" for t in periods}
    for unit in UNITS:
        for window in calendar_windows(survey, periods, unit):
            kinds.setdefault(window, unit)
    if periods.start == 0:  # the first period that is still known moves along; only period 0 is a fixed beginning
        days = calendar_windows(survey, periods, "day")
        for window in (Window(days[0].first, later.last) for later in days[1:]):
            if window.length <= survey.horizon:
                kinds.setdefault(window, "cumulative")
    return kinds
