"""What is published: the consistent histogram beside the unbiased estimates (PROTOCOLS 6), and shortened numbers.

Numbers have as many decimals as their errors carry: more would be noise, and several times the bytes.
"""

from math import ceil, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.estimates import CONFIDENCE, Estimates, estimate, quantile
from analytics.estimation.likelihood import most_likely
from analytics.estimation.ordered import early_stopped, half_width
from analytics.estimation.votes import nearest, unbiased
from protocols.arrays import Floats
from protocols.mechanisms import Channel, MatrixRound, PlanarChannel

MOST_DECIMALS = 15
LEAST_DECIMALS_OF_SHARES = 4


class ConsistentShares(NamedTuple):
    """Shares that are non-negative and sum to 1, or to the size of padded sets.

    They have intervals only if the values have an order.
    """

    value: Floats
    low: Floats | None = None
    high: Floats | None = None


def consistent_shares(
    counts: ArrayLike, n: int, channel: Channel, confidence: float = CONFIDENCE, correction: str = "usual"
) -> ConsistentShares:
    """The consistent histogram of one set of reports: `counts[value]` of `n` reports support each value; n is above 0.

    Ordered mechanisms and places get the early-stopped histogram with intervals, all others the nearest one. The
    correction "likeliest" is of the maximum likelihood, for all of them.

    >>> from protocols.mechanisms import SupportChannel
    >>> from protocols.mechanisms.rounds import geometric, grr
    >>> consistent_shares([50, 30, 5], 85, SupportChannel(3, grr(3, 1.0), exclusive=True)).value.round(3).tolist()
    [0.823, 0.177, 0.0]
    >>> ordered = consistent_shares([10, 30, 40, 20], 100, MatrixRound(geometric(4, 1.0).matrix))
    >>> bool(np.all((ordered.low < ordered.value) & (ordered.value < ordered.high)))
    True
    """
    if correction == "likeliest":
        return ConsistentShares(most_likely(counts, n, channel))
    if isinstance(channel, PlanarChannel):
        places = estimate(counts, n, channel, population=n, confidence=confidence)
        return ConsistentShares(places.value, places.low, places.high)
    if not isinstance(channel, MatrixRound):
        return ConsistentShares(nearest(unbiased(np.asarray(counts, dtype=np.float64) / n, channel), channel))
    whole = np.rint(counts).astype(np.int64)
    share, steps = early_stopped(whole, channel)
    half = half_width(whole, channel, share, steps, quantile(confidence))
    return ConsistentShares(share, np.maximum(share - half, 0), np.minimum(share + half, 1))


def decimals(error: Floats) -> int | None:
    """How many decimals the smallest of some standard errors carries: those of its first three digits.

    None if there is no error: the numbers are exact, or nothing is known.

    >>> decimals(np.array([0.0312, 0.17])), decimals(np.array([25.0])), decimals(np.array([0.0, np.inf]))
    (4, 1, None)
    """
    noisy = error[np.isfinite(error) & (error > 0)]
    return None if not len(noisy) else min(max(ceil(-log10(noisy.min())) + 2, 0), MOST_DECIMALS)


def shortened(estimates: Estimates) -> Estimates:
    """Estimates with the decimals that their errors carry.

    >>> shortened(Estimates(*np.array([[0.123456], [0.031234], [0.06123], [0.18578]]))).value.tolist()
    [0.1235]
    """
    places = decimals(estimates.error)
    if places is None:
        return estimates
    return Estimates(*(np.round(part, places) + 0.0 for part in estimates.parts))  # + 0.0: no negative zero


def shortened_consistent(consistent: ConsistentShares, error: Floats) -> ConsistentShares:
    """A consistent histogram with the decimals of its intervals, or if it has none, of the errors of the estimates."""
    if consistent.low is None or consistent.high is None:
        return ConsistentShares(sum_to_one(consistent.value, places_of(error)))
    places = places_of((consistent.high - consistent.low) / 4)
    ends = (np.round(end, places) for end in (consistent.low, consistent.high))
    return ConsistentShares(sum_to_one(consistent.value, places), *ends)


def places_of(error: Floats) -> int:
    """How many decimals consistent shares have."""
    return max(decimals(error) or 0, LEAST_DECIMALS_OF_SHARES)


def sum_to_one(shares: Floats, places: int) -> Floats:
    """Shares that sum to 1, with so many decimals. They still sum to 1: those that lose most are rounded up.

    >>> sum_to_one(np.array([1 / 3, 1 / 3, 1 / 3]), 4).tolist()
    [0.3334, 0.3333, 0.3333]
    """
    units = shares * 10.0**places
    whole = np.floor(units + 1e-9)
    lacking = round(10.0**places - whole.sum())
    if lacking > 0:
        whole[np.argsort(whole - units, kind="stable")[:lacking]] += 1
    return np.asarray(np.round(whole / 10.0**places, places))
