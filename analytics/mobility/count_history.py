"""The counts a report is made from, and the unique devices of every window: sums over first reports (PROTOCOLS 7).

    n[period, gap - 1]           reports                gaps 1 .. horizon; the last means "horizon or more, or never"
    N[period, gap - 1, value]    reports that support each value

With a long horizon most gaps do not occur: a `ByGap` holds the counters of one period for the gaps that do. Each cell
n[period, gap] may carry two-sided geometric noise, P(x) proportional to e^(-|x| / scale).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from math import ceil, exp, log2, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.estimates import CONFIDENCE, Estimates, exact, quantile
from analytics.mobility.model import Suppression
from analytics.windows.calendar import Window
from analytics.windows.units import UnitSum, UnitSums
from protocols.arrays import Floats, Whole
from protocols.privacy import geometric_variance
from protocols.scheme import Scheme

MANY = 1000  # cells in a sum whose noise counts as normal
AGREED, UNBIASED = "agreed visitors", "unbiased visitors"  # beside the names of attributes, which have no spaces
Counters = NDArray[Any]


class ByGap(NamedTuple):
    """One period's counters: `counts[row, ...]` belong to gap `gaps[row]`. Gaps ascend; those left out count 0."""

    gaps: Whole
    counts: Counters


@dataclass(frozen=True, eq=False)
class CountHistory:
    """Counts of consecutive periods, from `first` on, by attribute.

    `reports[period, gap - 1]` and `supports` (of each value, one entry per period) are as they may be published: exact,
    or released with noise. `reports` also has presence-only reports, if the survey has any. Released supports are those
    of all gaps together, so windows of several periods have none. `agreed[period, gap - 1]` are the visitors, made to
    agree, if there is noise.

    `ranges` has, for each period in which gaps are joined to ranges, the first gap of each range; none where a question
    is left out. None: every gap counts on its own. The counts of a range are listed under its first gap.

    In a survey with `visitors` there are no gaps, so windows are single periods; `units` are the sums of calendar units
    through the last one, and `newest` is that one alone, if its new visitors are known.
    """

    scheme: Scheme
    first: int
    reports: Mapping[str, NDArray[np.int64]]
    supports: Mapping[str, Sequence[ByGap]]
    agreed: NDArray[np.int64] | None = None
    ranges: Sequence[Whole | None] = ()
    units: UnitSums = field(default_factory=dict)
    newest: UnitSum | None = None

    @property
    def by_gap(self) -> bool:
        """Whether supports are known by gap or flags: only then windows of several periods have answers."""
        return self.agreed is None and self.scheme.survey.central is None

    def suppression(self, window: Window) -> Suppression | None:
        """Why a window cannot be computed: a period of it is not released, or its border falls inside a range."""
        found: Suppression | None = None
        for later, borders in enumerate(self._borders(window)):
            if borders is not None and not borders:
                return "minimum"
            if borders is not None and later + 1 not in borders:
                found = "difference"
        return found

    def gap_ranges(self, window: Window) -> list[tuple[int, int]] | None:
        """The ranges of gaps, up to the one before the horizon, that all periods of a window have in common.

        None if the number of new visitors is not known. Of a period that comes later in the window only longer gaps
        count. Where there are no ranges, every gap is one.
        """
        horizon = self.scheme.survey.horizon
        shared = set(range(1, horizon + 1))
        for later, borders in enumerate(self._borders(window)):
            if borders is not None:
                shared &= borders.union(range(1, later + 2))
        if horizon not in shared:
            return None
        return [(low, high - 1) for low, high in pairwise(sorted(shared))]

    def _borders(self, window: Window) -> Iterator[set[int] | None]:
        """Where ranges begin, in each period of a window; None: everywhere.

        In period t no gap is possible between t and the horizon: nobody reported before period 0. So what begins after
        t are the new visitors.
        """
        start = window.first - self.first
        for period, first_gaps in enumerate(self.ranges[start : start + window.length], window.first):
            borders = None if first_gaps is None else set(first_gaps.tolist())
            if borders is not None and period + 1 in borders:
                borders.update(range(period + 1, self.scheme.survey.horizon + 1))
            yield borders

    @property
    def periods(self) -> range:
        return range(self.first, self.first + len(next(iter(self.reports.values()))))

    def visitors(self, window: Window) -> Estimates:
        """The number of different devices that reported: exact, or agreed with the error of the noise."""
        unbiased = self.gap_counts(window, unbiased=True).sum()
        return self.counted(self.unique(window), unbiased, self._cells(window))

    def unique(self, window: Window) -> int:
        """The number alone."""
        return int(self.gap_counts(window).sum())

    def unbiased_visitors(self, window: Window) -> Estimates:
        """The same as a plain sum of cells, which may be negative and contradict others."""
        return self.unbiased(self.gap_counts(window, unbiased=True).sum(), self._cells(window))

    def counted(self, agreed: ArrayLike, unbiased: ArrayLike, cells: ArrayLike) -> Estimates:
        """Numbers of visitors, and the intervals of the sums of cells they were made of, not below 0."""
        sums = self.unbiased(unbiased, cells)
        low, high = np.maximum(np.minimum(sums.low, agreed), 0), np.maximum(sums.high, agreed)
        return Estimates(np.asarray(agreed, dtype=np.float64), sums.error, low, high)

    def unbiased(self, total: ArrayLike, cells: ArrayLike) -> Estimates:
        """Sums of so many cells of each kind of report: exact, or with the error of the noise."""
        noise, totals = self.scheme.presence, np.asarray(total, dtype=np.float64)
        if noise is None:
            return exact(totals)
        error, half_width = noise_widths(np.asarray(cells) * len(self.scheme.kinds), noise.reports_scale, CONFIDENCE)
        return Estimates(totals, error, totals - half_width, totals + half_width)

    def gap_counts(self, window: Window, unbiased: bool = False) -> NDArray[np.int64]:
        """Visitors by the gap of their first report in the window; the last entry is new visitors.

        They are agreed, or plain sums of cells.
        """
        return self._first_reports(UNBIASED if unbiased or self.agreed is None else AGREED, window)

    def of_unit(self, found: UnitSum) -> Estimates:
        """The visitors of a calendar unit, and the new ones."""
        exact = [sum(part.get(kind, 0) for kind in self.scheme.kinds) for part in (found.n, found.new)]
        return self.counted(found.agreed or exact, exact, found.cells)

    def answers(self, name: str, window: Window) -> int:
        """The number of answers to one attribute, not below 0."""
        return max(int(self._first_reports(name, window).sum()), 0)

    def supported(self, name: str, window: Window) -> NDArray[np.int64]:
        """How many of these answers support each value; of a single period, if supports are not known by gap."""
        return np.asarray(first_reports(self.supports[name], *self._place(window)))

    def _cells(self, window: Window) -> int:
        """How many cells of each kind of report are added up for the visitors of a window."""
        longest = len(self.scheme.visits.cells)
        return sum(longest - later for later in range(window.length))

    def _first_reports(self, name: str, window: Window) -> NDArray[np.int64]:
        """The first reports of a window, by gap."""
        start, length = self._place(window)
        return np.asarray(np.triu(self._tables[name][start : start + length]).sum(axis=0))

    @cached_property
    def _tables(self) -> dict[str, NDArray[np.int64]]:
        """Reports `[period, gap - 1]`."""
        agreed = {} if self.agreed is None else {AGREED: self.agreed}
        return {**self.reports, **agreed, UNBIASED: np.sum([self.reports[kind] for kind in self.scheme.kinds], axis=0)}

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


def noise_error(cells: int, scale: float) -> float:
    """The standard deviation of the noise on a sum of this many cells."""
    return sqrt(cells * geometric_variance(scale))


def noise_widths(cells: NDArray[np.int64], scale: float, confidence: float) -> tuple[Floats, Floats]:
    """Of sums of so many cells: the errors, and half the widths of the intervals."""
    each = [(noise_error(one, scale), noise_quantile(one, scale, confidence)) for one in np.ravel(cells).tolist()]
    errors, half_widths = np.array(each, dtype=np.float64).reshape(-1, 2).T
    return errors.reshape(cells.shape), half_widths.reshape(cells.shape)


@lru_cache(maxsize=4096)
def noise_quantile(cells: int, scale: float, confidence: float) -> int:
    """The smallest r such that the noise on a sum of this many cells lies between -r and r with this probability.

    For few cells it is exact, computed through the characteristic function. The noise of many cells is normal to four
    digits, and their exact distribution would need too much memory.

    >>> noise_quantile(1, 1.0, 0.95), noise_quantile(1000, 1.0, 0.95)
    (3, 84)
    """
    if cells >= MANY:
        return ceil(quantile(confidence) * noise_error(cells, scale) - 0.5)
    alpha = exp(-1 / scale)
    size = 1 << max(6, int(log2(40 * (1 + noise_error(cells, scale)))) + 1)
    turns = np.cos(2 * np.pi * np.arange(size // 2 + 1) / size)
    chance = np.fft.irfft(((1 - alpha) ** 2 / (1 - 2 * alpha * turns + alpha**2)) ** cells, size)
    within = chance[0] + 2 * np.cumsum(chance[1 : size // 2])
    return int(np.searchsorted(np.concatenate([chance[:1], within]), confidence))
