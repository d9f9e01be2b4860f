"""The different devices of windows that are still open: sums of first reports, which grow period by period.

A report is the first of its device in a window if it has the flag of the window's unit, or if its gap reaches back
beyond the window's first period.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from analytics.windows.numbers import Tables, add_tables
from analytics.windows.spans import SINCE, Span
from protocols.arrays import Whole
from protocols.survey import BITS, CalendarVisits, Unit, Visits

By = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class WindowSum:
    """The first reports of a window through a period: by question, how many devices answered it, and how many are new.

    `N` are their supports, where answers of first reports are published. `visits` are the released tables of the
    window's periods. `late` and `refused` rows are not counted.
    """

    first: int
    n: Mapping[str, int] = field(default_factory=dict)
    new: Mapping[str, int] = field(default_factory=dict)
    N: Mapping[str, Whole] = field(default_factory=dict)
    late: int = 0
    refused: int = 0
    visits: Tables = field(default_factory=dict)

    def add(self, other: "WindowSum") -> "WindowSum":
        """The sum of two runs of periods of the same window, of which this is the earlier one."""
        return WindowSum(
            self.first,
            n=_added(self.n, other.n),
            new=_added(self.new, other.new),
            N=_added(self.N, other.N),
            late=self.late + other.late,
            refused=self.refused + other.refused,
            visits=add_tables(self.visits, other.visits),
        )

    def devices(self, kinds: tuple[str, ...]) -> int:
        """Different devices, whatever they answered."""
        return sum(self.n.get(kind, 0) for kind in kinds)

    def new_devices(self, kinds: tuple[str, ...]) -> int:
        """Those of them that are new."""
        return sum(self.new.get(kind, 0) for kind in kinds)

    @property
    def head(self) -> dict[str, Any]:
        """The numbers, for JSON; those that finals have, which release 0.2 reads, too."""
        return {"first": self.first, "n": self.n, "new": self.new, "late": self.late, "refused": self.refused}

    @staticmethod
    def of_head(head: Mapping[str, Any], N: Mapping[str, Whole]) -> "WindowSum":
        """The sum that has this head. Heads of release 0.2 have more numbers, which are not needed."""
        return WindowSum(head["first"], head["n"], head["new"], N, head["late"], head["refused"])


UnitSums = Mapping[Unit, WindowSum]
WindowKey = tuple[str, int]  # the series of a span, and its first period
WindowSums = Mapping[WindowKey, WindowSum]


def _added(ours: By, theirs: By) -> dict[str, Any]:
    return {key: ours.get(key, 0) + theirs.get(key, 0) for key in {**ours, **theirs}}


def first_in(span: Span, axis: Whole, visits: Visits, period: int) -> Whole:
    """The rows of a period's counts, by gap or flags, that are first reports in a span."""
    if span.first == period and span.series == SINCE:
        return np.arange(len(axis))
    if isinstance(visits, CalendarVisits):
        return flagged(axis, span.series)
    return np.flatnonzero(axis > period - span.first)


def never_before(axis: Whole, visits: Visits) -> Whole:
    """The rows of a period's counts that are new devices: never seen, or not within the horizon. None if not known."""
    if isinstance(visits, CalendarVisits):
        return flagged(axis, "ever")
    known = visits.reach > 1
    return np.flatnonzero((axis == visits.reach) & known)


def flagged(axis: Whole, unit: str) -> Whole:
    """The rows of counts whose flags have a unit."""
    return np.flatnonzero(axis & BITS[cast(Unit, unit)])
