"""What a report says about its device's earlier reports: an axis along which reports are counted.

It is one small number. Either the *gap*, how many periods ago the device last reported, up to the survey's horizon;
or, in a survey with `visitors`, *flags*: a bit for each calendar unit in which this is the device's first report.
Wire, counters, finals and noise treat both alike.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import get_args

import numpy as np

from protocols.arrays.aliases import Bytes, Column, Mask, Whole
from protocols.survey.calendar import DAY, SHORTER, Calendar, Unit

UNITS: tuple[Unit, ...] = get_args(Unit)
BITS: Mapping[Unit, int] = {unit: 1 << place for place, unit in enumerate(UNITS)}
INSIDE: Mapping[Unit, tuple[Unit, ...]] = {
    "day": (), "week": ("day",), "month": ("day",), "year": ("day", "month"), "ever": UNITS,
}  # fmt: skip
"""Units whose instances never cross a border of this one: a week may belong to two months."""
MONDAY = 3  # days from the Monday before 1970-01-01
MOST_REACH = 65535

NEVER = -1
"""In place of the last period in which a device reported."""


class GapVisits:
    """Gaps of 1 .. horizon periods; the horizon also stands for longer ones, and for never."""

    column = "gap"
    """Its name on the wire."""
    wire = np.dtype(">u2")
    """How a single report writes it: unsigned, big-endian."""

    def __init__(self, horizon: int) -> None:
        self.cells: Whole = np.arange(1, horizon + 1)
        """All numbers that can occur, ascending."""
        self.reach = horizon
        """How many periods a window or a unit has at most: so long late and lost reports are remembered by period."""

    def of(self, last: Whole, period: int) -> Column:
        """What devices report in a period that reported before in `last`, or `NEVER`.

        >>> GapVisits(7).of(np.array([4, NEVER, 1]), 5).tolist()
        [1, 7, 4]
        """
        gaps = np.where(last == NEVER, self.reach, np.clip(period - last, 1, self.reach))
        return gaps.astype(np.uint16)

    def good(self, numbers: Column, period: int) -> Mask:
        """Which of these numbers a report of this period can have."""
        return np.asarray((numbers >= 1) & (numbers <= self.reach))

    def previous(self, number: int, period: int) -> range:
        """The periods in one of which a device reported last that reports this number; none if that is not known."""
        return range(period - number, period - number + 1) if number < self.reach else range(0)

    def read(self, raw: bytes | Bytes) -> Column:
        """The numbers of single reports, as they were written."""
        return np.frombuffer(raw, self.wire).astype(np.uint16)


class CalendarVisits:
    """Flags: bit u is set if the device has reported in no earlier period of the same day, week, month, year, or ever.

    Units are sets of consecutive periods: a period belongs to the local day on which it begins, and to the ISO week,
    month and year of that day. Bits of units that are not counted are 0.

    >>> from datetime import datetime
    >>> days = CalendarVisits(Calendar(datetime.fromisoformat("2026-01-05T00:00:00Z"), DAY), ("week", "month", "ever"))
    >>> days.cells.tolist()  # none, week, month, week and month, ever
    [0, 2, 4, 6, 22]
    >>> days.of(np.array([NEVER, 6, 2]), 9).tolist()  # Wednesday 14th; the second was there on Sunday
    [22, 2, 2]
    >>> sorted(days.possible(9)), days.previous(2, 9), days.previous(0, 9)
    ([0, 2, 22], range(0, 7), range(7, 9))
    """

    column, wire = "flags", np.dtype("u1")

    def __init__(self, calendar: Calendar, units: Sequence[Unit]) -> None:
        self.calendar = calendar
        self.units = tuple(unit for unit in UNITS if unit in units)
        self.cells: Whole = np.array([flags for flags in range(1 << len(UNITS)) if self._consistent(flags)])
        self.first = lru_cache(maxsize=1024)(self._first)
        self.last = lru_cache(maxsize=1024)(self._last)
        days = max(SHORTER.get(unit, SHORTER["year"]) for unit in self.units)
        self.reach = min(-(-days * DAY // calendar.period) + 1, MOST_REACH)

    def of(self, last: Whole, period: int) -> Column:
        flags = np.zeros(len(last), dtype=np.uint8)
        for unit in self.units:
            flags |= np.where(last < self.first(unit, period), BITS[unit], 0).astype(np.uint8)
        return flags

    def good(self, numbers: Column, period: int) -> Mask:
        try:
            self.calendar.bounds(period)  # raises for one after the last: a stranger may name any period
            return np.isin(numbers, list(self.possible(period)))
        except OverflowError:
            return np.zeros(len(numbers), dtype=bool)

    def possible(self, period: int) -> set[int]:
        """All flags that a report of this period can have: at most one more than there are units."""
        before = {NEVER, period - 1, *(self.first(unit, period) - 1 for unit in self.units)}
        return set(self.of(np.array(sorted(before)), period).tolist())

    def previous(self, number: int, period: int) -> range:
        since = [self.first(unit, period) for unit in self.units if not number & BITS[unit]]
        until = [self.first(unit, period) for unit in self.units if number & BITS[unit]]
        return range(max(since, default=0), min(until, default=period))

    def read(self, raw: bytes | Bytes) -> Column:
        return np.frombuffer(raw, self.wire)

    def _consistent(self, flags: int) -> bool:
        """Whether units that contain each other agree: whoever is first in one is first in all inside it."""
        counted = sum(BITS[unit] for unit in self.units)
        inside = [(unit, sum(BITS[other] for other in INSIDE[unit]) & counted) for unit in self.units]
        return not flags & ~counted and all(flags & own == own for unit, own in inside if flags & BITS[unit])

    def _first(self, unit: Unit, period: int) -> int:
        """The first period of the unit that a period belongs to."""
        if unit == "ever":
            return 0
        return bisect_left(range(period), _day_of(unit, self.calendar.day(period), 0), key=self.calendar.day)

    def _last(self, unit: Unit, period: int) -> int:
        """The last period of the unit that a period belongs to."""
        if unit == "ever":
            return self.calendar.last
        beyond = range(period + 1, min(period + 2 + self.reach, self.calendar.last + 1))
        following = _day_of(unit, self.calendar.day(period), 1)
        return period + bisect_left(beyond, following, key=self.calendar.day)


def _day_of(unit: Unit, day: int, later: int) -> int:
    """The first day of the unit that a day is in, or of a later one; days are counted from 1970-01-01."""
    if unit in ("day", "week"):
        length = SHORTER[unit]
        return (day + MONDAY) // length * length - MONDAY + later * length if unit == "week" else day + later
    begun = np.datetime64(day, "D").astype("M8[M]" if unit == "month" else "M8[Y]") + later
    return int(begun.astype("M8[D]").astype(np.int64))


Visits = GapVisits | CalendarVisits
"""One of both axes."""


@lru_cache(maxsize=256)
def visits_of(calendar: Calendar, horizon: int, units: tuple[Unit, ...]) -> Visits:
    """The axis of a survey, kept."""
    return CalendarVisits(calendar, units) if units else GapVisits(horizon)
