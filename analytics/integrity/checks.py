"""Checks of one attribute's counts, and the share of forged reports that each would have noticed (docs/audit.md, 9).

Each has a law that holds for honest devices whatever people's values are. Sum, widths and negativity bound the chance
of honest counts for any number of reports. A jump says that something changed, which honest people may do all at once.
Forged reports that are noticed with a chance of 90 %:

    sum          support one value and nothing else
    widths       support one value, filled up to the most usual width
    negativity   all support one value
    jump         the same, by forgers who were not there in the period before
"""

from dataclasses import dataclass

import numpy as np

from analytics.estimation.votes import Voted, nearest
from analytics.integrity.tails import (
    at_least,
    at_most,
    bisected,
    half_square_moments,
    half_squares_tail,
    mean_limit,
    mean_tail,
    rare_counts,
)
from protocols.arrays import Floats, Whole
from protocols.mechanisms import Channel, PlanarChannel, SupportChannel

ALPHA = 0.01
"""The chance of a false alarm in the whole life of a survey, over all periods, attributes and checks."""
USUALLY = 1.6448536269514722
"""In standard deviations: what is noticed with a chance of 90 %, with a margin for approximations; 5 % lie above it."""
ENOUGH = 25.0
"""Variances of counts from which on they are taken as normal."""


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
