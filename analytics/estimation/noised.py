"""Released numbers of devices: exact ones, and the intervals of those with two-sided geometric noise (PROTOCOLS 7)."""

from collections.abc import Sequence

import numpy as np

from analytics.estimation.estimates import CONFIDENCE, Estimates
from protocols.privacy import noise_error, noise_quantile


def released_number(number: int, scales: Sequence[float]) -> Estimates:
    """A released number, not below 0, with noises of these scales; none if it is exact.

    >>> town = released_number(5012, [9.0])
    >>> town.value.tolist(), round(float(town.error), 1), town.low.tolist(), town.high.tolist()
    (5012.0, 12.7, 4985.0, 5039.0)
    >>> released_number(-3, [9.0]).value.tolist()
    0.0
    """
    half_width = noise_quantile(tuple(sorted(scales)), CONFIDENCE) if scales else 0
    ends = (number, number - half_width, number + half_width)
    value, low, high = (np.asarray(float(max(end, 0))) for end in ends)
    return Estimates(value, np.asarray(noise_error(scales)), low, high)
