"""The unique devices of every window, without identifiers (PROTOCOLS 7).

A report of period t is its device's first in the window [s..e] exactly when its gap is at least t - s + 1. So with
counters by period and gap, every window up to the horizon is a sum. Counters have the shape

    n[period, gap - 1]           reports                gaps 1 .. horizon; the last means "horizon or more, or never"
    N[period, gap - 1, value]    reports that support each value

and further dimensions are allowed, so the same functions count devices and histograms of devices. With a long horizon
most gaps do not occur: a `ByGap` holds the counters of one period for the gaps that do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Whole

Counters = NDArray[Any]


@dataclass(frozen=True, eq=False)
class ByGap:
    """One period's counters: `counts[row, ...]` belong to gap `gaps[row]`. Gaps ascend; those left out count 0.

    >>> period = ByGap(np.array([1, 4]), np.array([10, 5]))
    >>> int(period.at_least(1)), int(period.at_least(2)), int(period.at_least(5))
    (15, 5, 0)
    """

    gaps: Whole
    counts: Counters

    def at_least(self, gap: int) -> Counters:
        """The sum over this gap and all longer ones."""
        found: Counters = self._sums[bisect_left(self._listed, gap)]
        return found

    @property
    def total(self) -> Counters:
        """The sum over all gaps: `at_least(1)` without the sums for longer gaps."""
        return np.asarray(self.counts.sum(axis=0))

    @cached_property
    def _listed(self) -> list[int]:
        return list(self.gaps.tolist())

    @cached_property
    def _sums(self) -> Counters:
        nothing = np.zeros((1, *self.counts.shape[1:]), dtype=self.counts.dtype)
        return np.cumsum(np.concatenate([nothing, self.counts[::-1]]), axis=0)[::-1]


def by_gap(counters: Counters) -> list[ByGap]:
    """Counters `[period, gap - 1, ...]` period by period."""
    gaps = np.arange(1, counters.shape[1] + 1)
    return [ByGap(gaps, period) for period in counters]


def first_reports(periods: Sequence[ByGap], start: int, length: int) -> Counters:
    """The sum over the first reports of one window: its unique devices, or their histogram.

    Device 1 reports in periods 0 and 1, device 2 in period 1 only:

    >>> n = by_gap(np.array([[0, 1], [1, 1]]))
    >>> int(first_reports(n, 0, 2)), int(first_reports(n, 1, 1))
    (2, 2)
    """
    if length < 1 or not 0 <= start <= len(periods) - length:
        raise ValueError(f"periods {start} to {start + length - 1}; counters have 0 to {len(periods) - 1}")
    return np.asarray(sum(periods[start + later].at_least(later + 1) for later in range(length)))
