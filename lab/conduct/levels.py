"""Chances of luck: exact tails, bounds of tails, and what they are in a family of tests."""

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np

from protocols.arrays import Floats, Whole

STEEPEST = 60.0  # of exponents in a bound: what is beyond is as good as impossible
HALVINGS = 60


class Law(NamedTuple):
    """The chances of 0, 1, 2 .., and how many independent devices draw from them."""

    chances: Floats
    devices: int


def two_sided(lower: float, upper: float) -> float:
    """The chance of something as odd on either side, from the tails of both."""
    return min(1.0, 2 * min(lower, upper))


def binomial_chances(counts: Whole, trials: Whole, chances: Floats) -> Floats:
    """Two-sided tails of counts of successes, each in so many trials.

    >>> binomial_chances(np.array([5, 10]), np.array([10, 10]), np.array([0.5, 0.5])).round(4).tolist()
    [1.0, 0.002]
    """
    from scipy.stats import binom  # takes over a second to import

    lower = binom.cdf(counts, trials, chances)
    upper = binom.sf(counts - 1, trials, chances)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(lower, upper)))


def sum_chance(laws: Sequence[Law], total: int) -> float:
    """At most with this chance is a sum of independent draws as far from its mean (Chernoff, both sides).

    It is exact up to the factor 2 if the sum is the least or the largest one that there is.

    >>> coin = np.array([0.5, 0.5])
    >>> f"{sum_chance([Law(coin, 20)], 0):.2g}", sum_chance([Law(coin, 20)], 10)
    ('1.9e-06', 1.0)
    """
    mean = sum(law.devices * float(law.chances @ np.arange(len(law.chances))) for law in laws)
    if total == mean:
        return 1.0
    steep = STEEPEST if total > mean else -STEEPEST
    gentle = 0.0
    for _ in range(HALVINGS):
        between = (steep + gentle) / 2
        beyond = _tilted(laws, between)[1] > total
        if beyond == (total > mean):
            steep = between
        else:
            gentle = between
    bound = _tilted(laws, gentle)[0] - gentle * total
    return min(1.0, 2 * exp(min(0.0, bound)))


def _tilted(laws: Sequence[Law], slope: float) -> tuple[float, float]:
    """ln of the mean of e^(slope sum), and the mean of the sum under the law that is tilted by it."""
    logs = 0.0
    mean = 0.0
    for law in laws:
        places = np.arange(len(law.chances))
        exponents = slope * places
        top = exponents.max()
        weights = law.chances * np.exp(exponents - top)
        whole = weights.sum()
        logs += law.devices * (log(whole) + top)
        mean += law.devices * float(weights @ places) / whole
    return logs, mean


def smallest(chances: Floats) -> float:
    """The smallest of some chances, as it is among so many tests (Bonferroni).

    >>> smallest(np.array([0.5, 0.001, 0.2, 0.9]))
    0.004
    """
    return min(1.0, float(chances.min(initial=1.0)) * chances.size)


def holm(chances: Sequence[float]) -> list[float]:
    """Chances of luck, each as it is in the family of all of them (Holm 1979).

    Whoever refutes what is at most alpha does so wrongly with a chance of at most alpha in all.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [1.0] * len(chances)
    largest = 0.0
    for rank, place in enumerate(np.argsort(chances, kind="stable").tolist()):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = largest
    return adjusted
