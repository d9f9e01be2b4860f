"""The error and the quantiles of sums of noised cells (PROTOCOLS 7).

Each cell n[period, gap] may carry two-sided geometric noise, P(x) proportional to e^(-|x| / scale). A window adds up
many cells, so its noise is a sum of such draws.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, exp, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimates import quantile
from protocols.arrays import Floats
from protocols.privacy import geometric_variance

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
