"""Counts with noise made to agree with one another (PROTOCOLS 7).

The cells of a period have noise of their own, so sums of them may contradict each other. `Agreed` is the nearest set of
cells, in whole numbers, with the same total, that some visitors could have caused: no cell is negative, and each report
is followed by at most one. So parts add up to their whole, and a window has at least the visitors of every window
inside it.
"""

from dataclasses import dataclass

import numpy as np

from protocols.arrays import Whole


@dataclass(frozen=True, eq=False)
class Agreed:
    """The agreed cells of a period: `cells[gap - 1]` visitors.

    `left[gap - 1]` is how many reports a gap of the next period can refer to: those of `gap` periods before it that no
    later report has followed yet. The last entry has no meaning: that gap also stands for devices that never reported.
    """

    cells: Whole
    left: Whole


def agree(noised: Whole, total: int, before: Whole | None) -> Agreed:
    """The agreed cells of a period from its noised ones; `before` is what the period before it has `left`.

    Without a period before it, all visitors are new.

    >>> first = agree(np.array([-3, 4, 50]), 51, None)
    >>> first.cells.tolist(), first.left.tolist()
    ([0, 0, 51], [51, 0, 0])
    >>> agree(np.array([60, -8, 10]), 62, first.left).cells.tolist()
    [51, 0, 11]
    """
    horizon = len(noised)
    most = np.zeros(horizon, dtype=np.int64) if before is None else before.copy()
    most[-1] = total  # new visitors are limited by the total alone
    cells = project(noised, most, total)
    left = np.zeros(horizon, dtype=np.int64)
    left[0] = total
    left[1:] = (most - cells)[:-1]
    return Agreed(cells, left)


def project(numbers: Whole, most: Whole, total: int) -> Whole:
    """The nearest whole numbers between 0 and `most` with this total, which must not exceed the sum of `most`.

    The nearest ones are the given ones less some amount, cut at both ends. The amount is found by halving; what is
    lacking because it is whole goes to the first numbers that can take it.

    >>> project(np.array([5, -2, 3]), np.array([9, 9, 9]), 6).tolist()
    [4, 0, 2]
    """
    low, high = int(min(numbers.min() - most.max(), 0)) - 1, int(max(numbers.max(), 0)) + 1
    while high - low > 1:  # at `low` the sum is at least the total, at `high` it is at most the total
        middle = (low + high) // 2
        low, high = (low, middle) if int(np.clip(numbers - middle, 0, most).sum()) <= total else (middle, high)
    cut = np.clip(numbers - high, 0, most)
    room = np.flatnonzero(np.clip(numbers - high + 1, 0, most) > cut)
    cut[room[: total - int(cut.sum())]] += 1
    return np.asarray(cut)
