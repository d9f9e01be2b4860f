"""Whole numbers of people: scaling counts so that totals stay exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def proportional(counts: Sequence[int] | NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Scale counts to a new total, by the method of the largest remainders (of equal ones, the first).

    Computed in whole numbers, so counts that already have the total do not change.

    >>> proportional([50, 30, 20], 7).tolist()
    [4, 2, 1]
    >>> proportional([50, 30, 20], 100).tolist()
    [50, 30, 20]
    """
    given = np.asarray(counts, dtype=np.int64)
    whole, remainder = np.divmod(given * total, given.sum())
    left = total - int(whole.sum())
    whole[np.argsort(-remainder, kind="stable")[:left]] += 1
    return whole
