"""Tails of distributions that hold for any number of reports, however small the chances are."""

from collections.abc import Callable

import numpy as np

from protocols.arrays import Floats, Whole

STEPS = 40  # of a bisection


def at_most(counts: Whole | Floats, n: int, p: Floats | float) -> Floats:
    """P(X <= count) of binomial numbers.

    >>> at_most(np.array([0, 1, 2]), 2, 0.5).tolist()
    [0.25, 0.75, 1.0]
    """
    from scipy.special import betainc  # readers of results do without it

    below = np.minimum(np.asarray(counts, dtype=np.float64), n - 1)
    return np.where(np.asarray(counts) >= n, 1.0, betainc(n - below, below + 1, 1 - np.asarray(p)))


def at_least(counts: Whole | Floats, n: int, p: Floats | float) -> Floats:
    """P(X >= count) of binomial numbers.

    >>> at_least(np.array([0, 1, 2]), 2, 0.5).tolist()
    [1.0, 0.75, 0.25]
    """
    from scipy.special import betainc

    above = np.maximum(np.asarray(counts, dtype=np.float64), 1)
    return np.where(np.asarray(counts) <= 0, 1.0, betainc(above, n - above + 1, np.asarray(p)))


def rare_counts(level: float, n: int, p: Floats) -> Whole:
    """Of binomial numbers: the largest counts with P(X <= count) <= level; -1 where there is none.

    >>> rare_counts(0.3, 2, np.array([0.1, 0.5, 0.9])).tolist()
    [-1, 0, 1]
    """
    low, high = np.full(p.shape, -1), np.full(p.shape, n)
    while (high - low).max(initial=1) > 1:
        middle = (low + high + 1) // 2
        rare = at_most(middle, n, p) <= level
        low, high = np.where(rare, middle, low), np.where(rare, high, middle)
    return low


def mean_tail(mean: float, n: int, laws: Floats) -> float:
    """A bound on the chance that the mean of n numbers is so far off, on either side (Chernoff).

    Each number is one of 0, 1 .. with the chances of some mixture of the laws.

    >>> coin = np.array([[0.5, 0.5]])
    >>> mean_tail(0.5, 100, coin), mean_tail(1.0, 100, coin) < 1e-29
    (1.0, True)
    """
    means = laws @ np.arange(laws.shape[1])
    if means.min() <= mean <= means.max():
        return 1.0
    sign, logs = 1.0 if mean > means.max() else -1.0, _logs(laws)
    slope = sign * _least(lambda size: bool(sign * (_tilted(logs, sign * size)[1] - mean) >= 0))
    power, _ = _tilted(logs, slope)
    return min(1.0, 2 * float(np.exp(min(0.0, n * (power - slope * mean)))))


def mean_limit(level: float, n: int, laws: Floats, sign: float) -> float:
    """The mean, above (sign 1) or below (-1) all honest ones, from which on `mean_tail` is at most a level.

    >>> coin = np.array([[0.5, 0.5]])
    >>> limit = mean_limit(0.01, 1000, coin, 1)
    >>> round(limit, 4), round(mean_tail(limit, 1000, coin), 4)
    (0.5514, 0.01)
    """
    logs = _logs(laws)

    def enough(size: float) -> bool:
        power, mean = _tilted(logs, sign * size)
        return bool(n * (sign * size * mean - power) >= np.log(2 / level))

    return _tilted(logs, sign * _least(enough))[1]


def _logs(laws: Floats) -> Floats:
    """The logarithms of chances; those of 0 are -inf."""
    return np.log(laws, out=np.full(laws.shape, -np.inf), where=laws > 0)


def _tilted(logs: Floats, slope: float) -> tuple[float, float]:
    """Of numbers X with the worst law: ln E[exp(slope X)], and its derivative: the mean of X under tilted chances.

    Weights are relative to the largest of their law: of many numbers, those of all others may be too small for a float.
    """
    places = np.arange(logs.shape[1])
    powers = logs + slope * places
    tops = powers.max(axis=1, keepdims=True)
    weights = np.exp(powers - tops)
    totals = weights.sum(axis=1)
    sums = tops[:, 0] + np.log(totals)
    worst = int(np.argmax(sums))
    return float(sums[worst]), float(weights[worst] @ places / totals[worst])


def _least(test: Callable[[float], bool]) -> float:
    """The smallest slope at which a test is true that stays true for larger ones; at most 64."""
    low, high = 0.0, 1.0
    while high < 64 and not test(high):
        low, high = high, 2 * high
    return bisected(test, low, high)


def half_squares_tail(totals: Floats | float, count: int) -> Floats:
    """P(sum of min(Z, 0)^2 >= total) of `count` independent normal numbers: a mixture of chi-squared laws.

    >>> half_squares_tail(np.array([2.706, 0.0]), 1).round(4).tolist()
    [0.05, 1.0]
    """
    from scipy.special import chdtrc, gammaln

    reach = int(10 * np.sqrt(count)) + 1  # beyond it, weights are below 1e-86
    times = np.arange(max(1, count // 2 - reach), min(count, count // 2 + 1 + reach) + 1)
    logarithms = gammaln(count + 1) - gammaln(times + 1) - gammaln(count - times + 1) - count * np.log(2)
    totals = np.asarray(totals, dtype=np.float64)
    tails = chdtrc(times, np.maximum(totals, 0)[..., None]) @ np.exp(logarithms)
    return np.where(totals > 0, np.minimum(tails, 1.0), 1.0)


def half_square_moments(means: Floats) -> tuple[Floats, Floats]:
    """The mean and the variance of min(Z + m, 0)^2.

    >>> [float(moment[0].round(3)) for moment in half_square_moments(np.zeros(1))]
    [0.5, 1.25]
    >>> half_square_moments(np.array([38.4]))[1].tolist()
    [0.0]
    """
    from scipy.special import ndtr

    below, density = ndtr(-means), np.exp(-(means**2) / 2) / np.sqrt(2 * np.pi)
    square = (1 + means**2) * below - means * density
    fourth = (means**4 + 6 * means**2 + 3) * below - (means**3 + 5 * means) * density
    return square, np.maximum(fourth - square**2, 0)  # far from 0 the difference of two large numbers is rounded


def bisected(test: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest number at which a test is true, which stays true for larger ones up to the highest.

    >>> round(bisected(lambda share: share > 0.123, 0.0, 1.0), 6)
    0.123
    """
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if test(middle) else (middle, high)
    return high
