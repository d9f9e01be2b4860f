"""Two-sided geometric noise: P(x) is proportional to e^(-|x| / scale) (PROTOCOLS 7)."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import ceil, exp, log2, sqrt
from statistics import NormalDist

import numpy as np

MANY = 1000  # noises, whose sum counts as normal


def geometric_variance(scale: float) -> float:
    """The variance of one noise.

    >>> round(geometric_variance(3.0), 3)
    17.834
    """
    alpha = exp(-1 / scale)
    return 2 * alpha / (1 - alpha) ** 2


def noise_error(scales: Sequence[float]) -> float:
    """The standard deviation of the sum of noises of these scales."""
    return sqrt(sum(geometric_variance(scale) for scale in scales))


@lru_cache(maxsize=4096)
def noise_quantile(scales: tuple[float, ...], confidence: float) -> int:
    """The smallest r such that the sum of noises of these scales lies between -r and r with this probability.

    For few noises it is exact, computed through the characteristic function. The sum of many is normal to four digits,
    and its exact distribution would need too much memory.

    >>> noise_quantile((1.0,), 0.95), noise_quantile((1.0,) * 1000, 0.95), noise_quantile((1.0, 9.0), 0.95)
    (3, 84, 27)
    """
    error = noise_error(scales)
    if len(scales) >= MANY:
        return ceil(NormalDist().inv_cdf((1 + confidence) / 2) * error - 0.5)
    size = 1 << max(6, int(log2(40 * (1 + error))) + 1)
    turns = np.cos(2 * np.pi * np.arange(size // 2 + 1) / size)
    law = np.ones(len(turns))
    for scale, times in Counter(scales).items():
        alpha = exp(-1 / scale)
        law = law * ((1 - alpha) ** 2 / (1 - 2 * alpha * turns + alpha**2)) ** times
    chance = np.fft.irfft(law, size)
    within = chance[0] + 2 * np.cumsum(chance[1 : size // 2])
    return int(np.searchsorted(np.concatenate([chance[:1], within]), confidence))
