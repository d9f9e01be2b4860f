"""What is published: the consistent histogram beside the unbiased estimates (PROTOCOLS 6), and shortened numbers.

Numbers have as many decimals as their errors carry: more would be noise, and several times the bytes.

The correction "likeliest" publishes the likeliest histogram. If a report names a value, it is found by
expectation-maximisation (IBU) from the even distribution; also of places. Of other reports, and of sets, only supports
are counted: it is the nearest histogram in the metric of the channel's covariance.
"""

from math import ceil, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.estimates import CONFIDENCE, Estimates, estimate, quantile
from analytics.estimation.stopping import early_stopped, half_width
from analytics.estimation.votes import covariance, nearest, unbiased
from protocols.arrays import Floats
from protocols.mechanisms import Channel, MatrixRound, PlanarChannel, SupportChannel

MOST_DECIMALS = 15
LEAST_DECIMALS_OF_SHARES = 4
TOLERANCE = 1e-10  # times n: how far the log-likelihood may stay below its peak
NEAR = 0.01  # the same of places, whose steps are slow, divided by n
STEPS = 20_000
ROUNDS = 3


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


def most_likely(counts: ArrayLike, n: ArrayLike, channel: Channel) -> Floats:
    """The likeliest histogram given `counts[..., value]` of `n[...]` reports; even where there are none.

    >>> from protocols.mechanisms.rounds import grr
    >>> most_likely([50, 30, 5], 85, SupportChannel(3, grr(3, 1.0), exclusive=True)).round(3).tolist()
    [0.77, 0.23, 0.0]
    """
    counts, n = np.asarray(counts, dtype=np.float64), np.asarray(n, dtype=np.float64)[..., None]
    total = channel.several if isinstance(channel, SupportChannel) else 1
    shares = np.where(n > 0, counts / np.maximum(n, 1), channel.support(np.full(channel.k, total / channel.k)))
    if isinstance(channel, SupportChannel) and (not channel.exclusive or total > 1 or channel.slots):
        return weighted_projection(shares, channel)
    most = float(np.max(n, initial=1))
    return ibu(shares, channel, NEAR / most if isinstance(channel, PlanarChannel) else TOLERANCE)


def ibu(shares: Floats, channel: Channel, tolerance: float = TOLERANCE) -> Floats:
    """Iterative Bayesian update: p_i <- sum_j share_j p_i C_ij / (p C)_j until the likelihood is at its peak.

    The largest slope over the simplex bounds the distance to the peak, so the stopping rule is exact. Plain steps can
    be slow: every three of them are extrapolated along their curve as long as the likelihood grows (SQUAREM).

    >>> from protocols.mechanisms import MatrixRound
    >>> from protocols.mechanisms.rounds import geometric
    >>> channel, truth = MatrixRound(geometric(4, 1.0).matrix), np.array([0.1, 0.2, 0.3, 0.4])
    >>> ibu(channel.support(truth), channel, tolerance=1e-13).round(5).tolist()
    [0.1, 0.2, 0.3, 0.4]
    """
    flat = shares.reshape(-1, shares.shape[-1])
    result = np.full_like(flat, 1 / flat.shape[1])
    active = np.arange(len(flat))
    for _ in range(STEPS):
        q, now = flat[active], result[active]
        slopes = _slopes(q, now, channel)
        active, q, now, slopes = (part[slopes.max(axis=1) > 1 + tolerance] for part in (active, q, now, slopes))
        if not len(active):
            break
        result[active] = _leap(q, now, slopes, channel)
    return result.reshape(shares.shape)


def _slopes(shares: Floats, p: Floats, channel: Channel) -> Floats:
    """The derivative of the mean log-likelihood by each p_i; 1 on average, at the peak nowhere above 1."""
    return channel.back(shares / np.maximum(channel.support(p), 1e-300))


def _leap(shares: Floats, start: Floats, slopes: Floats, channel: Channel) -> Floats:
    first = start * slopes
    second = first * _slopes(shares, first, channel)
    step, bend = first - start, second - 2 * first + start
    length = np.sqrt((step**2).sum(axis=1) / np.maximum((bend**2).sum(axis=1), 1e-300))[:, None].clip(1, 1e4)
    far = np.maximum(start + 2 * length * step + length**2 * bend, first * 1e-3)
    far /= far.sum(axis=1, keepdims=True)
    better = _log_likelihood(shares, far, channel) >= _log_likelihood(shares, second, channel)
    return np.where(better[:, None], far, second)


def _log_likelihood(shares: Floats, p: Floats, channel: Channel) -> Floats:
    return np.asarray((shares * np.log(np.maximum(channel.support(p), 1e-300))).sum(axis=1))


def weighted_projection(shares: Floats, channel: SupportChannel) -> Floats:
    """The nearest possible histogram, in the metric of the inverse covariance.

    The covariance depends on the result, so it is taken at the previous one, starting from the nearest one.
    """
    found = []
    for row in unbiased(shares, channel).reshape(-1, channel.k):
        result = nearest(row, channel)
        for _ in range(0 if channel.slots else ROUNDS):  # errors of thresholds are nearly alike
            result = project(row, covariance(channel, result), channel)
        found.append(result)
    return np.reshape(found, shares.shape)


def project(point: Floats, spread: Floats, channel: Channel) -> Floats:
    """The possible x with the smallest (x - point)' spread^-1 (x - point): a distribution, or the shares of sets.

    Non-negative least squares. That x sums to 1 is one more equation, which counts far more than the others. In sets,
    each value has a share and a rest, which sum to 1, and the shares of paddings are sums over the sizes of sets.

    >>> from protocols.mechanisms.rounds import oue
    >>> sets = SupportChannel(5, oue(1.0), exclusive=False, several=2)
    >>> project(np.array([1.5, 0.6, -0.2, 0.2, 0.3]), np.eye(5), sets).round(5).tolist()
    [1.0, 0.56667, 0.0, 0.21667, 0.21667]
    """
    from scipy.optimize import nnls  # takes a while to import

    several = channel.several if isinstance(channel, SupportChannel) else 1
    k, items = channel.k, channel.k - several
    parts, totals = np.eye(k), np.ones((1, k))
    if several > 1:
        item, rest = np.eye(items, k + items + 1), np.eye(items, k + items + 1, items)
        size = np.eye(several + 1, k + items + 1, 2 * items)
        parts = np.concatenate([item, np.triu(np.ones((several, several + 1)), 1) @ size])
        totals = np.concatenate([parts.sum(axis=0)[None] / several, size.sum(axis=0)[None], item + rest])
    ridge = 1e-6 * spread.diagonal().mean() * np.eye(k)  # singular where everybody has the same value
    root = np.linalg.inv(np.linalg.cholesky(spread + ridge))
    weight = 1e5 * np.abs(root).max()
    system = np.vstack([root @ parts, weight * totals])
    x, _ = nnls(system, np.append(root @ point, np.full(len(totals), weight)), maxiter=30 * system.shape[1])
    found = parts @ x
    return np.asarray(found * several / found.sum())
