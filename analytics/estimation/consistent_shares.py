"""The consistent histogram that is published beside the unbiased estimates (PROTOCOLS 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.estimates import CONFIDENCE, estimate, quantile
from analytics.estimation.ordered import early_stopped, half_width
from analytics.estimation.votes import norm_sub, unbiased
from protocols.arrays import Floats
from protocols.mechanisms import Channel, MatrixChannel, PlanarChannel


@dataclass(frozen=True, eq=False)
class ConsistentShares:
    """Shares that are non-negative and sum to 1. They have intervals only if the values have an order."""

    value: Floats
    low: Floats | None = None
    high: Floats | None = None


def consistent_shares(counts: ArrayLike, n: int, channel: Channel, confidence: float = CONFIDENCE) -> ConsistentShares:
    """The consistent histogram of one set of reports: `counts[value]` of `n` reports support each value; n is above 0.

    Ordered mechanisms and places get the early-stopped histogram with intervals, all others Norm-Sub.

    >>> from protocols.mechanisms import SupportChannel
    >>> from protocols.mechanisms.rounds import geometric, grr
    >>> consistent_shares([50, 30, 5], 85, SupportChannel(3, grr(3, 1.0), exclusive=True)).value.round(3).tolist()
    [0.823, 0.177, 0.0]
    >>> ordered = consistent_shares([10, 30, 40, 20], 100, MatrixChannel(geometric(4, 1.0).matrix))
    >>> bool(np.all((ordered.low < ordered.value) & (ordered.value < ordered.high)))
    True
    """
    if isinstance(channel, PlanarChannel):
        places = estimate(counts, n, channel, population=n, confidence=confidence)
        return ConsistentShares(places.value, places.low, places.high)
    if not isinstance(channel, MatrixChannel):
        return ConsistentShares(norm_sub(unbiased(np.asarray(counts, dtype=np.float64) / n, channel)))
    whole = np.rint(counts).astype(np.int64)
    share, steps = early_stopped(whole, channel)
    half = half_width(whole, channel, share, steps, quantile(confidence))
    return ConsistentShares(share, np.maximum(share - half, 0), np.minimum(share + half, 1))
