"""Values dealt to people, and counts scaled to other totals."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protocols.arrays import Places, Values, Whole

ABSENT = -1


def proportional(counts: ArrayLike, total: int) -> NDArray[np.int64]:
    """Scale counts to a new total, by the method of the largest remainders (of equal ones, the first).

    Computed in whole numbers, so counts that already have the total do not change.

    >>> proportional([50, 30, 20], 7).tolist()
    [4, 2, 1]
    >>> proportional([50, 30, 20], 100).tolist()
    [50, 30, 20]
    """
    given = np.asarray(counts, dtype=np.int64)
    parts, remainder = np.divmod(given * total, given.sum())
    left = total - int(parts.sum())
    parts[np.argsort(-remainder, kind="stable")[:left]] += 1
    return parts


def shuffled(rng: np.random.Generator, counts: Whole) -> NDArray[np.int16]:
    """Each value as often as its count, in random order."""
    return rng.permutation(np.repeat(np.arange(len(counts), dtype=np.int16), counts))


def handed(rng: np.random.Generator, records: Values, before: Values, stay: float) -> Places:
    """Which record each person gets, if so large a share of those who had a value before keeps it, where it is there.

    `records` are the values of the records of a day, `before` the values that people had, or ABSENT.

    >>> rng = np.random.default_rng(0)
    >>> records = np.array([0, 0, 1, 1, 1])
    >>> records[handed(rng, records, np.array([1, 0, 0, ABSENT, 1]), 1.0)].tolist()
    [1, 0, 0, 1, 1]
    """
    found = np.full(len(records), ABSENT, dtype=np.intp)
    for value in np.unique(records):
        same = rng.permutation(np.flatnonzero(records == value))
        people = rng.permutation(np.flatnonzero(before == value))
        kept = min(len(same), round(stay * len(people)))
        found[people[:kept]] = same[:kept]
    rest = np.setdiff1d(np.arange(len(records)), found)
    found[found == ABSENT] = rng.permutation(rest)
    return found
