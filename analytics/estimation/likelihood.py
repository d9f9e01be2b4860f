"""The likeliest histogram (PROTOCOLS 6), for every channel; an attribute's `correction` makes results publish it.

a report names a value    expectation-maximisation (IBU) from the even distribution; also of places
other reports, and sets   only supports are counted: the nearest histogram in the metric of the channel's covariance
"""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.votes import covariance, nearest, unbiased
from protocols.arrays import Floats
from protocols.mechanisms import Channel, PlanarChannel, SupportChannel

TOLERANCE = 1e-10  # times n: how far the log-likelihood may stay below its peak
NEAR = 0.01  # the same of places, whose steps are slow, divided by n
STEPS = 20_000
ROUNDS = 3


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
