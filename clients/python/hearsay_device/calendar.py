"""When periods begin, and which day, week, month and year they belong to (docs/device-protocol.md, "Periods").

Instants and local times are whole seconds since 1970.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import accumulate

DAY = 86400
LAST = (1 << 32) - 2
EVER = 1 << 62
UNITS = {"day": 1, "week": 7, "month": 31, "year": 366, "ever": EVER}
"""By their bit in the flags of a report: periods of so many days or more are never twice in the same unit."""


class Calendar:
    """The periods of a survey. `offsets`: since when local time is how many seconds ahead of UTC.

    >>> paris = Calendar(1774652400, DAY, [(1774566000, 3600), (1774746000, 7200)], 1775000000)
    >>> paris.begin(2) - paris.begin(1), paris.of(1774823400), paris.last
    (82800, 2, 3)
    """

    def __init__(self, start: int, period: int, offsets: Sequence[tuple[int, int]] = (), until: int = EVER) -> None:
        self.start, self.period = start, period
        self._since = [-EVER, *(since for since, _ in offsets[1:])]
        self._offset = [ahead for _, ahead in offsets] or [0]
        # The latest local time that clocks have shown before the end of each stretch of one offset.
        ends = (since + ahead for since, ahead in zip(self._since[1:], self._offset))
        self._ends = [*accumulate(ends, max), EVER]
        self._even = not offsets or period % DAY != 0
        self._first_day = self._reached(start) // DAY * DAY
        self.last = min(LAST, self.of(until) - 1)

    def begin(self, period: int) -> int:
        if self._even:
            return self.start + period * self.period
        local = self._first_day + period * self.period
        stretch = bisect_right(self._ends, local)
        return max(self._since[stretch], local - self._offset[stretch])

    def of(self, instant: int) -> int:
        """The period that an instant belongs to; negative before the start."""
        if self._even:
            return (instant - self.start) // self.period
        return (self._reached(instant) - self._first_day) // self.period

    def flags(self, period: int, before: int | None, counted: Iterable[str]) -> int:
        """One bit for each counted unit in which this is the first report; `before` is the last reported period."""
        now, then = self._units(period), [None] * 5 if before is None else self._units(before)
        return sum(1 << i for i, unit in enumerate(UNITS) if unit in counted and now[i] != then[i])

    def _units(self, period: int) -> list[object]:
        """The day, week, month, year and ever that a period belongs to, by the local day on which it begins.

        >>> Calendar(1774652400, DAY, [(1774566000, 3600)], 1775000000)._units(2)
        [20542, 2935, (2026, 3), 2026, 'ever']
        """
        day = self._reached(self.begin(period)) // DAY
        at = date(1970, 1, 1) + timedelta(days=day)
        return [day, (day + 3) // 7, (at.year, at.month), at.year, "ever"]

    def _reached(self, instant: int) -> int:
        """The latest local time that clocks have shown until an instant: it does not go back when clocks do."""
        stretch = bisect_right(self._since, instant) - 1
        earlier = self._ends[stretch - 1] - 1 if stretch > 0 else -EVER
        return max(instant + self._offset[stretch], earlier)
