"""Consistent histograms beside the published ones: of the maximum likelihood, for every channel, and clipped.

The maximum likelihood distribution (PROTOCOLS 6):

channel matrices     expectation-maximisation (IBU), from the uniform distribution; also of direct encodings
unary and hashed     only supports are counted: the nearest distribution in the metric of the channel's covariance
"""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation import covariance, norm_sub, unbiased, with_votes
from protocols.arrays import Floats
from protocols.mechanisms import Channel, SupportChannel

TOLERANCE = 1e-10  # times n: how far the log-likelihood may stay below its peak
STEPS = 20_000
ROUNDS = 3


def most_likely(counts: ArrayLike, n: ArrayLike, channel: Channel) -> Floats:
    """The likeliest distribution given `counts[..., value]` of `n[...]` reports; uniform where there are none.

    >>> from protocols.mechanisms.rounds import grr
    >>> most_likely([50, 30, 5], 85, SupportChannel(3, grr(3, 1.0), exclusive=True)).round(3).tolist()
    [0.77, 0.23, 0.0]
    """
    counts, n = np.asarray(counts, dtype=np.float64), np.asarray(n, dtype=np.float64)[..., None]
    shares = np.where(n > 0, counts / np.maximum(n, 1), channel.support(np.full(channel.k, 1 / channel.k)))
    channel = with_votes(channel)
    if isinstance(channel, SupportChannel) and not channel.exclusive:
        return weighted_projection(shares, channel)
    return ibu(shares, channel.matrix)


def ibu(shares: Floats, matrix: Floats, tolerance: float = TOLERANCE) -> Floats:
    """Iterative Bayesian update: p_i <- sum_j share_j p_i C_ij / (p C)_j until the likelihood is at its peak.

    The largest slope over the simplex bounds the distance to the peak, so the stopping rule is exact. Plain steps can
    be slow: every three of them are extrapolated along their curve as long as the likelihood grows (SQUAREM).

    >>> from protocols.mechanisms.rounds import geometric
    >>> matrix = geometric(4, 1.0).matrix
    >>> truth = np.array([0.1, 0.2, 0.3, 0.4])
    >>> ibu(truth @ matrix, matrix, tolerance=1e-13).round(5).tolist()
    [0.1, 0.2, 0.3, 0.4]
    """
    flat = shares.reshape(-1, shares.shape[-1])
    result = np.full_like(flat, 1 / flat.shape[1])
    active = np.arange(len(flat))
    for _ in range(STEPS):
        q, now = flat[active], result[active]
        slopes = _slopes(q, now, matrix)
        active, q, now, slopes = (part[slopes.max(axis=1) > 1 + tolerance] for part in (active, q, now, slopes))
        if not len(active):
            break
        result[active] = _leap(q, now, slopes, matrix)
    return result.reshape(shares.shape)


def _slopes(shares: Floats, p: Floats, matrix: Floats) -> Floats:
    """The derivative of the mean log-likelihood by each p_i; 1 on average, at the peak nowhere above 1."""
    return np.asarray((shares / np.maximum(p @ matrix, 1e-300)) @ matrix.T)


def _leap(shares: Floats, start: Floats, slopes: Floats, matrix: Floats) -> Floats:
    first = start * slopes
    second = first * _slopes(shares, first, matrix)
    step, bend = first - start, second - 2 * first + start
    length = np.sqrt((step**2).sum(axis=1) / np.maximum((bend**2).sum(axis=1), 1e-300))[:, None].clip(1, 1e4)
    far = np.maximum(start + 2 * length * step + length**2 * bend, first * 1e-3)
    far /= far.sum(axis=1, keepdims=True)
    better = _log_likelihood(shares, far, matrix) >= _log_likelihood(shares, second, matrix)
    return np.where(better[:, None], far, second)


def _log_likelihood(shares: Floats, p: Floats, matrix: Floats) -> Floats:
    return np.asarray((shares * np.log(np.maximum(p @ matrix, 1e-300))).sum(axis=1))


def weighted_projection(shares: Floats, channel: SupportChannel) -> Floats:
    """The nearest distribution, in the metric of the inverse covariance.

    The covariance depends on the result, so it is taken at the previous one, starting from Norm-Sub.
    """
    raw = unbiased(shares, channel).reshape(-1, channel.k)
    result = norm_sub(raw)
    for _ in range(ROUNDS):
        result = np.array([project(row, _metric(channel, now)) for row, now in zip(raw, result, strict=True)])
    return result.reshape(shares.shape)


def _metric(channel: SupportChannel, frequencies: Floats) -> Floats:
    """The covariance, with a small ridge: where everybody has the same value it is singular."""
    spread = covariance(channel, frequencies)
    return np.asarray(spread + 1e-6 * spread.diagonal().mean() * np.eye(channel.k))


def project(point: Floats, spread: Floats) -> Floats:
    """The distribution x with the smallest (x - point)' spread^-1 (x - point).

    Non-negative least squares; that x sums to 1 is one more equation, which counts far more than the others.

    >>> project(np.array([0.7, 0.5, -0.1]), np.eye(3)).round(9).tolist()
    [0.6, 0.4, 0.0]
    """
    from scipy.optimize import nnls  # takes a while to import

    root = np.linalg.inv(np.linalg.cholesky(spread))
    weight = 1e5 * np.abs(root).max()
    system, target = np.vstack([root, np.full(len(point), weight)]), np.append(root @ point, weight)
    x, _ = nnls(system, target, maxiter=30 * len(point))
    return np.asarray(x / x.sum())


def clip_renormalise(frequencies: Floats) -> Floats:
    """Cut at 0 and divide by the sum, as the papers do. Uniform if no frequency is positive.

    >>> clip_renormalise(np.array([0.7, 0.5, -0.1])).round(3).tolist()
    [0.583, 0.417, 0.0]
    """
    clipped = np.maximum(frequencies, 0)
    total = clipped.sum(axis=-1, keepdims=True)
    even = np.full_like(clipped, 1 / clipped.shape[-1])
    return np.asarray(np.divide(clipped, total, out=even, where=total > 0))
