"""The counts of surveys that publish everything, and the unique devices of every window: sums over first reports.

    n[period, gap - 1]           reports                gaps 1 .. horizon; the last means "horizon or more, or never"
    N[period, gap - 1, value]    reports that support each value

With a long horizon most gaps do not occur: a `ByGap` holds the counters of one period for the gaps that do
(PROTOCOLS 7).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimates import Estimates, exact
from analytics.windows.calendar import Window
from analytics.windows.sums import UnitSums, WindowSum
from protocols.arrays import Whole
from protocols.scheme import Scheme

ALL_KINDS = "all reports"  # beside the names of attributes, which have no spaces
Counters = NDArray[Any]


class ByGap(NamedTuple):
    """One period's counters: `counts[row, ...]` belong to gap `gaps[row]`. Gaps ascend; those left out count 0."""

    gaps: Whole
    counts: Counters


@dataclass(frozen=True, eq=False)
class CountHistory:
    """Counts of consecutive periods, from `first` on, by attribute.

    `reports[period, gap - 1]`, and `supports` (of each value, one entry per period). `reports` also has presence-only
    reports, if the survey has any.

    In a survey with `visitors` there are no gaps, so windows are single periods; `units` are the sums of calendar units
    through the last one, and `newest` is that one alone, if its new visitors are known.
    """

    scheme: Scheme
    first: int
    reports: Mapping[str, NDArray[np.int64]]
    supports: Mapping[str, Sequence[ByGap]]
    units: UnitSums = field(default_factory=dict)
    newest: WindowSum | None = None

    @property
    def by_gap(self) -> bool:
        """Whether supports are known by gap or flags: only then windows of several periods have answers."""
        return self.scheme.survey.central is None

    @property
    def periods(self) -> range:
        return range(self.first, self.first + len(next(iter(self.reports.values()))))

    def visitors(self, window: Window) -> Estimates:
        """The number of different devices that reported."""
        return exact(np.asarray(self.gap_counts(window).sum()))

    def gap_counts(self, window: Window) -> NDArray[np.int64]:
        """Visitors by the gap of their first report in the window; the last entry is new visitors."""
        return self._first_reports(ALL_KINDS, window)

    def answers(self, name: str, window: Window) -> int:
        """The number of answers to one attribute."""
        return int(self._first_reports(name, window).sum())

    def supported(self, name: str, window: Window) -> NDArray[np.int64]:
        """How many of these answers support each value; of a single period, if supports are not known by gap."""
        return np.asarray(first_reports(self.supports[name], *self._place(window)))

    def _first_reports(self, name: str, window: Window) -> NDArray[np.int64]:
        """The first reports of a window, by gap."""
        start, length = self._place(window)
        return np.asarray(np.triu(self._tables[name][start : start + length]).sum(axis=0))

    @cached_property
    def _tables(self) -> dict[str, NDArray[np.int64]]:
        """Reports `[period, gap - 1]`."""
        return {**self.reports, ALL_KINDS: np.sum([self.reports[kind] for kind in self.scheme.kinds], axis=0)}

    def _place(self, window: Window) -> tuple[int, int]:
        if window.length > self.scheme.survey.horizon:
            raise ValueError(f"a window of {window.length} periods; the horizon is {self.scheme.survey.horizon}")
        return window.first - self.first, window.length


def first_reports(periods: Sequence[ByGap], start: int, length: int) -> Counters:
    """The sum over the first reports of one window: its unique devices, or their histogram.

    Device 1 reports in periods 0 and 1, device 2 in period 1 only:

    >>> n = [ByGap(np.array([1, 2]), np.array(period)) for period in ([0, 1], [1, 1])]
    >>> int(first_reports(n, 0, 2)), int(first_reports(n, 1, 1))
    (2, 2)
    """
    inside = enumerate(periods[start : start + length])
    return np.asarray(sum(n.counts[np.searchsorted(n.gaps, later + 1) :].sum(axis=0) for later, n in inside))
