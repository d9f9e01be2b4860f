"""Calendar windows: hours, days and weeks."""

from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from protocols.arrays import Whole
from protocols.survey import DAY, HOUR, MONDAY, Calendar, Survey

UNITS: Mapping[str, timedelta] = {"hour": HOUR, "day": DAY, "week": 7 * DAY}


class Window(NamedTuple):
    """The periods first .. last."""

    first: int
    last: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1

    def overlaps(self, other: "Window") -> bool:
        return self.first <= other.last and other.first <= self.last


def unit_begins(survey: Survey, periods: range, unit: str) -> list[int]:
    """With which of these consecutive periods an hour, a day or a week begins."""
    around = np.arange(periods.start - 1, periods.stop)
    units = _units_of(survey, around, unit)
    return (np.flatnonzero(units[1:] != units[:-1]) + periods.start).tolist()


def _units_of(survey: Survey, periods: Whole, unit: str) -> Whole:
    """The number of the hour, day or week in which each period begins."""
    if unit == "hour":
        return survey.calendar.hour(periods)
    days = survey.calendar.day(periods)
    return (days + MONDAY) // 7 if unit == "week" else days


def calendar_windows(survey: Survey, periods: range, unit: str) -> list[Window]:
    """The whole hours, days or weeks (from Monday) among these periods, in the survey's own time zone.

    A unit that is not a whole number of periods has no windows. One that is longer than the horizon is left out.

    >>> from protocols.survey_text import parse_survey
    >>> survey = parse_survey('''{id: s, start: 2026-01-05T18:00:00+01:00, period: 6h, eps: 1, horizon: 28,
    ...                           attributes: [{name: a, values: [x, y]}]}''')
    >>> calendar_windows(survey, range(12), "day")
    [Window(first=1, last=4), Window(first=5, last=8)]
    """
    size = UNITS[unit] // survey.period
    if UNITS[unit] % survey.period:
        return []
    begins = unit_begins(survey, range(periods.start, periods.stop + 1), unit)
    windows = [Window(begin, following - 1) for begin, following in pairwise(begins)]
    # Where clocks change by half an hour, there are half hours. Days have more or fewer hours, and stay days.
    return [w for w in windows if w.length <= survey.horizon and (unit != "hour" or w.length == size)]


def comparable(window: Window, calendar: Calendar, known: range) -> tuple[Window, str] | None:
    """The previous window to compare with: the same time a week before, or a day before, or the one just before."""
    for words, days in (("a week before", 7), ("the day before", 1)):
        if not days * DAY % calendar.period:
            earlier = _moved(window, calendar, -days)
            if earlier.last < window.first and _within(earlier, known):
                return earlier, words
    earlier = Window(window.first - window.length, window.first - 1)
    return (earlier, "the window just before") if _within(earlier, known) else None


def same_phase(window: Window, calendar: Calendar, known: range) -> list[Window]:
    """Windows at the same time of the week (or else of the day, or else of this length at any time) within `known`."""
    for days in (7, 1):
        if not days * DAY % calendar.period:
            day = calendar.day(window.first)
            near, far = (round((calendar.day(end) - day) / days) for end in (known[0], known[-1]))
            found = [_moved(window, calendar, days * steps) for steps in range(near - 1, far + 2)]
            if found := [moved for moved in found if _within(moved, known)]:
                return found
    return [Window(t, t + window.length - 1) for t in known if t + window.length - 1 in known]


def _moved(window: Window, calendar: Calendar, days: int) -> Window:
    """The periods between the same local times so many days later; of another length if clocks change in between."""
    return Window(calendar.days_later(window.first, days), calendar.days_later(window.last + 1, days) - 1)


def _within(window: Window, known: range) -> bool:
    return window.first <= window.last and window.first in known and window.last in known
