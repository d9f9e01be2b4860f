"""Calendar windows: hours, days, weeks, and the days since the beginning."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby
from typing import Literal, NamedTuple

from protocols.survey import Survey

Unit = Literal["hour", "day", "week"]
UNITS: dict[Unit, timedelta] = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}


class Window(NamedTuple):
    """The periods first .. last."""

    first: int
    last: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1

    def shifted(self, periods: int) -> Window:
        return Window(self.first + periods, self.last + periods)

    def overlaps(self, other: Window) -> bool:
        return self.first <= other.last and other.first <= self.last

    def inside(self, other: Window) -> bool:
        return other.first <= self.first and self.last <= other.last


def calendar_windows(survey: Survey, periods: range, unit: Unit) -> list[Window]:
    """The whole hours, days or weeks (from Monday) among these periods, in the survey's own time zone.

    A unit that is not a whole number of periods, or is longer than the horizon, has no windows.

    >>> from protocols.survey_text import parse_survey
    >>> survey = parse_survey('''{id: s, start: 2026-01-05T18:00:00+01:00, period: 6h, eps: 1, horizon: 28,
    ...                           attributes: [{name: a, values: [x, y]}]}''')
    >>> calendar_windows(survey, range(12), "day")
    [Window(first=1, last=4), Window(first=5, last=8)]
    """
    size = UNITS[unit] // survey.period
    if UNITS[unit] % survey.period or size > survey.horizon:
        return []
    runs = [list(run) for _, run in groupby(periods, key=lambda t: _unit_begin(survey.bounds(t)[0], unit))]
    return [Window(run[0], run[-1]) for run in runs if len(run) == size]


def cumulative_windows(windows: Iterable[Window], horizon: int) -> list[Window]:
    """From the first window's beginning to the end of each later one, up to the horizon.

    >>> cumulative_windows([Window(0, 3), Window(4, 7), Window(8, 11)], horizon=10)
    [Window(first=0, last=7)]
    """
    listed = list(windows)
    return [Window(listed[0].first, later.last) for later in listed[1:] if later.last - listed[0].first + 1 <= horizon]


def comparable(window: Window, period: timedelta, known: range) -> tuple[Window, str] | None:
    """The previous window to compare with: the same time a week before, or a day before, or the one just before."""
    for words, back in (
        ("a week before", UNITS["week"]),
        ("the day before", UNITS["day"]),
        ("the window just before", None),
    ):
        shift = window.length if back is None else back // period
        if back is not None and (back % period or shift < window.length):
            continue
        earlier = window.shifted(-shift)
        if earlier.first in known and earlier.last in known:
            return earlier, words
    return None


def same_phase(window: Window, period: timedelta, known: range) -> list[Window]:
    """Windows of this length at the same time of the week (or else of the day, or else at any time) within `known`."""
    for season in (UNITS["week"], UNITS["day"], period):
        if season % period:
            continue
        step = season // period
        starts = [t for t in known if (t - window.first) % step == 0 and t + window.length - 1 in known]
        if starts:
            return [Window(t, t + window.length - 1) for t in starts]
    return []


def _unit_begin(moment: datetime, unit: Unit) -> datetime:
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight if unit == "day" else midnight - timedelta(days=midnight.weekday())
