"""The unique devices of every window, without identifiers: sums of counters by period and gap (PROTOCOLS 7).

    n[period, gap - 1]           reports                gaps 1 .. horizon; the last means "horizon or more, or never"
    N[period, gap - 1, value]    reports that support each value

With a long horizon most gaps do not occur: a `ByGap` holds the counters of one period for the gaps that do. Each cell
n[period, gap] may carry two-sided geometric noise, P(x) proportional to e^(-|x| / scale).
"""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, exp, log2, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimates import quantile
from protocols.arrays import Floats, Whole
from protocols.privacy import geometric_variance

Counters = NDArray[Any]


class ByGap(NamedTuple):
    """One period's counters: `counts[row, ...]` belong to gap `gaps[row]`. Gaps ascend; those left out count 0."""

    gaps: Whole
    counts: Counters


def first_reports(periods: Sequence[ByGap], start: int, length: int) -> Counters:
    """The sum over the first reports of one window: its unique devices, or their histogram.

    Device 1 reports in periods 0 and 1, device 2 in period 1 only:

    >>> n = [ByGap(np.array([1, 2]), np.array(period)) for period in ([0, 1], [1, 1])]
    >>> int(first_reports(n, 0, 2)), int(first_reports(n, 1, 1))
    (2, 2)
    """
    inside = enumerate(periods[start : start + length])
    return np.asarray(sum(n.counts[np.searchsorted(n.gaps, later + 1) :].sum(axis=0) for later, n in inside))


MANY = 1000  # cells in a sum whose noise counts as normal


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
