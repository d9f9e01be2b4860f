"""The error and the quantiles of the noise on counts of devices (PROTOCOLS 7).

Each cell n[period, gap] may carry two-sided geometric noise, P(x) proportional to e^(-|x| epsilon / 3), because one
presence changes three cells. A window adds up many cells, so its noise is a sum of such draws.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, exp, log2, sqrt

import numpy as np

from analytics.estimation.estimates import quantile

CELLS_PER_PRESENCE = 3
MANY = 1000  # cells in a sum whose noise counts as normal


def scale(presence_epsilon: float) -> float:
    """The scale of the noise on one cell.

    >>> scale(1.5)
    2.0
    """
    return CELLS_PER_PRESENCE / presence_epsilon


@lru_cache(maxsize=4096)
def noise_error(cells: int, presence_epsilon: float) -> float:
    """The standard deviation of the noise on a sum of this many cells."""
    alpha = exp(-1 / scale(presence_epsilon))
    return sqrt(2 * alpha * cells) / (1 - alpha)


@lru_cache(maxsize=4096)
def noise_quantile(cells: int, presence_epsilon: float, confidence: float) -> int:
    """The smallest r such that the noise on a sum of this many cells lies between -r and r with this probability.

    For few cells it is exact, computed through the characteristic function. The noise of many cells is normal to four
    digits, and their exact distribution would need too much memory.

    >>> noise_quantile(1, 3.0, 0.95), noise_quantile(1000, 3.0, 0.95)
    (3, 84)
    """
    if cells >= MANY:
        return ceil(quantile(confidence) * noise_error(cells, presence_epsilon) - 0.5)
    alpha = exp(-1 / scale(presence_epsilon))
    size = 1 << max(6, int(log2(40 * (1 + noise_error(cells, presence_epsilon)))) + 1)
    turns = np.cos(2 * np.pi * np.arange(size // 2 + 1) / size)
    chance = np.fft.irfft(((1 - alpha) ** 2 / (1 - 2 * alpha * turns + alpha**2)) ** cells, size)
    within = chance[0] + 2 * np.cumsum(chance[1 : size // 2])
    return int(np.searchsorted(np.concatenate([chance[:1], within]), confidence))
