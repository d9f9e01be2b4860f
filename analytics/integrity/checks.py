"""Checks of one attribute's counts, and the share of forged reports that each would have noticed (docs/audit.md, 9).

Each has a law that holds for honest devices whatever people's values are. Sum, widths and negativity bound the chance
of honest counts for any number of reports. A jump says that something changed, which honest people may do all at once.
Forged reports that are noticed with a chance of 90 %:

    sum          support one value and nothing else
    widths       support one value, filled up to the most usual width
    negativity   all support one value
    jump         the same, by forgers who were not there in the period before

The tails of distributions hold for any number of reports, however small the chances are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analytics.estimation.votes import Voted, nearest
from protocols.arrays import Floats, Whole
from protocols.mechanisms import Channel, PlanarChannel, SupportChannel

ALPHA = 0.01
"""The chance of a false alarm in the whole life of a survey, over all periods, attributes and checks."""
USUALLY = 1.6448536269514722
"""In standard deviations: what is noticed with a chance of 90 %, with a margin for approximations; 5 % lie above it."""
ENOUGH = 25.0
"""Variances of counts from which on they are taken as normal."""
STEPS = 40  # of a bisection


@dataclass(frozen=True)
class Answers:
    """The counts of one attribute in one period, and the laws of its honest answers."""

    n: int
    supports: Whole
    widths: Whole
    channel: Channel
    laws: Floats  # of widths: see `protocols.privacy.width_laws`


@dataclass(frozen=True)
class Check:
    """How likely honest counts are so unusual, at most; and the smallest share of forged reports that is noticed."""

    p: float
    smallest: float | None


def sum_check(answers: Answers, level: float) -> Check:
    """The mean width of the answers."""
    n, places = answers.n, np.arange(len(answers.widths))
    means = answers.laws @ places
    spread = float(np.sqrt((answers.laws @ places**2 - means**2).max() / n))
    p = mean_tail(float(answers.widths @ places / n), n, answers.laws)
    nearest = float(means[np.argmin(np.abs(means - 1))])
    if nearest == 1:
        return Check(p, None)
    limit = mean_limit(level, n, answers.laws, float(np.sign(1 - nearest)))
    smallest = (abs(limit - nearest) + USUALLY * spread) / abs(1 - nearest)
    return Check(p, smallest if smallest < 1 else None)


def width_check(answers: Answers, level: float) -> Check:
    """The number of answers of each width: exact binomial tails, divided among the widths."""
    n, low, high = answers.n, answers.laws.min(axis=0), answers.laws.max(axis=0)
    cells = 2 * len(low)
    few, many = at_most(answers.widths, n, low), at_least(answers.widths, n, high)
    p = min(1.0, cells * float(min(few.min(), many.min())))
    others = 1 - high.max(keepdims=True)
    return Check(p, _smallest(n, others, others, level / cells))


def negativity_check(answers: Answers, level: float) -> Check:
    """The supports of each value: not below what noise alone makes, and not above what everybody would."""
    n, channel = answers.n, answers.channel
    if isinstance(channel, SupportChannel):
        low, high = channel.floor, channel.floor + channel.gain
    else:
        low, high = (channel.rounds[-1] if isinstance(channel, PlanarChannel) else channel).bounds
    cells = 2 * len(low)
    spread = np.sqrt(n * low * (1 - low))
    together = isinstance(channel, SupportChannel) and channel.together is None
    normal = (spread**2 >= ENOUGH) & together
    p = cells * float(min(at_most(answers.supports, n, low).min(), at_least(answers.supports, n, high).min()))
    if normal.any():
        below = np.minimum((answers.supports[normal] - n * low[normal]) / spread[normal], 0)
        p = 2 * min(p, float(half_squares_tail(below @ below, len(below))))

    shares = np.clip(answers.supports / n, low, high)
    if isinstance(channel, SupportChannel):
        shares = channel.support(nearest((answers.supports / n - channel.floor) / channel.gain, channel))
    others = np.arange(len(low)) != np.argmax(shares)
    where = normal & others

    def noticed(forged: float) -> bool:
        counts = n * (1 - forged) * shares[where]
        square, variance = half_square_moments((counts - n * low[where]) / spread[where])
        total = float(square.sum() - USUALLY * np.sqrt(variance.sum()))
        return bool(2 * half_squares_tail(total, int(normal.sum())) <= level)

    if where.any():
        return Check(min(1.0, p), bisected(noticed, 0.0, 1.0) if noticed(1.0) else None)
    lacking, least = np.where(others, shares, 1 - shares), np.where(others, low, 1 - high)
    return Check(min(1.0, p), _smallest(n, lacking, least, level / cells))


def _smallest(n: int, shares: Floats, least: Floats, level: float) -> float | None:
    """The smallest share of forged reports with which one of the counts is too low; None if it is not even with all.

    The expected counts are these shares of honest reports and none of forged ones. One is too low if a report counts
    with the least chance, and so few do with a chance of `level` at most.
    """
    chances, which = np.unique(least, return_inverse=True)
    needed = n * shares + USUALLY * np.sqrt(n * shares * (1 - shares)) - rare_counts(level, n, chances)[which]
    forged = np.divide(needed, n * shares, out=np.where(needed > 0, np.inf, 0.0), where=shares > 0)
    smallest = float(forged.min())
    return max(smallest, 0.0) if smallest <= 1 else None


def jump_check(answers: Answers, before: Answers, level: float) -> Check | None:
    """The share of answers that support each value, against the period before; None if there are too few."""
    from scipy.special import ndtr, ndtri  # readers of results do without it

    n, past = answers.n, before.n
    share = (answers.supports + before.supports) / (n + past)
    variances = share * (1 - share)
    where = variances * min(n, past) >= ENOUGH
    if not where.any():
        return None
    errors = np.sqrt(variances[where] * (1 / n + 1 / past))
    found = np.abs(answers.supports[where] / n - before.supports[where] / past) / errors
    cells = 2 * len(errors)
    p = min(1.0, cells * float(ndtr(-found.max())))
    needed = -ndtri(level / cells) + USUALLY
    smallest = float((needed * errors / (1 - share[where])).max())
    return Check(p, smallest if smallest < 1 else None)


def robust(estimates: Floats, low: Floats, high: Floats, channel: Voted, forged: float) -> dict[str, Floats]:
    """From unbiased estimates with their intervals, if at most this share of the reports is forged; not of places.

    They are `normalised` shares, which sum to 1, and the ends of the interval of each share, `low` and `high`.

    An estimate is (1 - b) honest + b votes, where b is the forged share and votes are between what a report that does
    not support the value and one that does count for.

    >>> from protocols.mechanisms import Flip
    >>> channel = SupportChannel(3, Flip(0.6, 0.2), exclusive=True)
    >>> shares = np.array([0.7, 0.4, -0.1])
    >>> found = robust(shares, shares, shares, channel, forged=0.1)
    >>> [found[column].round(3).tolist() for column in ("normalised", "low", "high")]
    [[0.615, 0.385, 0.0], [0.556, 0.222, 0.0], [0.833, 0.5, 0.0]]
    """
    moved = estimates - estimates.min()
    if isinstance(channel, SupportChannel):
        least, most = -channel.floor / channel.gain, (1 - channel.floor) / channel.gain
    else:
        least, most = channel.votes.min(axis=0), channel.votes.max(axis=0)
    honest = 1 - forged
    normalised = moved / moved.sum() if moved.sum() > 0 else np.full(len(moved), 1 / len(moved))
    bounds = {"low": (low - forged * most) / honest, "high": (high - forged * least) / honest}
    return {"normalised": normalised, **{end: np.clip(bound, 0.0, 1.0) for end, bound in bounds.items()}}


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
