"""Consistent histograms: non-negative and summing to 1 (PROTOCOLS 6).

They are published beside the unbiased estimates, never instead of them, and are not stored: only counts can be merged.
Any leading dimensions are allowed; the last axis is the values.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays import Floats


def norm_sub(frequencies: Floats) -> Floats:
    """Subtract the same amount from every frequency, and cut at 0: the nearest distribution (default).

    >>> norm_sub(np.array([0.7, 0.5, -0.1])).round(9).tolist()
    [0.6, 0.4, 0.0]
    """
    descending = -np.sort(-frequencies, axis=-1)
    ranks = np.arange(1, frequencies.shape[-1] + 1)
    excess = (np.cumsum(descending, axis=-1) - 1) / ranks  # what to subtract if the first `rank` values stay positive
    kept = np.sum(descending > excess, axis=-1, keepdims=True)
    return np.maximum(frequencies - np.take_along_axis(excess, kept - 1, axis=-1), 0)
