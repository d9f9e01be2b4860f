"""People from aggregates: who comes on which days, so that published counts come out.

Flows between days are all that the different people of windows of days say about who comes when:

    flows[i, j]    people of day i whose next day is j; days are 1 .. N

Row 0 are those who never came before, column N + 1 those who never come again. The different people of days s..e are
the arcs i < s <= j <= e, one for each person. So all windows give the flows, and the flows give all windows.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protocols.arrays import Floats, Places, Whole

Flows = NDArray[np.int64]
ABSENT = -1
NEARLY = 1e-4  # fitted flows that are whole but for rounding are whole


def flows_of(unique: Whole) -> Flows:
    """The flows of a full triangle: `unique[s, e]` are the different people of days s..e.

    A number below 0 shows that no people can have caused these windows.
    """
    days = len(unique) - 1
    counts = np.zeros((days + 2, days + 2), dtype=np.int64)
    counts[1:-1, 1:-1] = np.triu(unique[1:, 1:])
    counts[0, :-1] = unique[1, days]  # everybody was there before the first day
    away = counts.copy()  # [i, j]: of day i, and of none of i + 1 .. j
    away[:-1] -= counts[1:]
    away[:, -1] = 0
    return np.triu(np.diff(away, axis=1, prepend=0) * -1, 1)


def whole(flows: Floats, least: Flows | None = None, most: Flows | None = None) -> Flows:
    """The nearest whole flows between two whole ones: first in the people of each day, and of all, then in each arc.

    A flow whose costs change at whole numbers only has a cheapest solution that is whole.
    """
    from scipy.optimize import linprog  # takes a while to import
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    start, end = np.nonzero(np.triu(flows if most is None else most, 1))
    columns, size = np.arange(len(start)), len(flows)
    arriving = csr_array((np.ones(len(start)), (end, columns)), shape=(size, len(start)))
    leaving = csr_array((np.ones(len(start)), (start, columns)), shape=(size, len(start)))
    # Each arc, and each day, is its own whole number and what goes beyond: so much less, a part of one, so much more.
    wanted = np.concatenate([flows[start, end], flows.sum(axis=0)[1:-1], flows[0].sum(keepdims=True)])
    base = np.floor(wanted + NEARLY)
    low, high = np.zeros(len(wanted)), np.full(len(wanted), np.inf)
    low[: len(start)] = 0 if least is None else least[start, end]
    high[: len(start)] = np.inf if most is None else most[start, end]
    base = np.clip(base, low, high)
    price = np.repeat([1.0, len(start) * 2.0], [len(start), len(wanted) - len(start)])
    part = np.clip(wanted - base, 0, 1)
    cost = np.concatenate([price * 2, price * (1 - 2 * part), price * 2])
    limits = [base - low, np.minimum(high - base, 1), np.maximum(high - base - 1, 0)]
    through: Any = hstack([vstack([arriving[1:-1], leaving[:1]]), -eye_array(size - 1)])
    balance = hstack([(arriving - leaving)[1:-1], csr_array((size - 2, size - 1))])
    matrix: Any = vstack([through, balance])
    rows = matrix.tocsr()
    both: Any = hstack([-rows, rows, rows])
    found: Any = linprog(
        cost,
        A_eq=both,
        b_eq=-(rows @ base),
        bounds=[(0.0, limit) for limit in np.concatenate(limits).tolist()],
        method="highs-ds",
    )
    assert found.status == 0, f"no whole flow was found: {found.message}"
    less, some, more = np.split(np.rint(found.x), 3)
    rounded = np.zeros(flows.shape, dtype=np.int64)
    rounded[start, end] = (base - less + some + more)[: len(start)]
    return rounded


def deal(flows: Whole, rng: np.random.Generator) -> list[Places]:
    """The people of each day, ascending: those present are shuffled, and dealt to their next days.

    Who was there before has no influence on where one goes next. Every window has exactly the people of the flows.
    """
    arriving: list[list[Places]] = [[] for _ in flows]
    arriving[0].append(np.arange(flows[0].sum()))
    present = []
    for day, leaving in enumerate(flows[:-1]):
        there = np.concatenate([np.zeros(0, dtype=np.intp), *arriving[day]])
        present.append(np.sort(there))
        for later, part in enumerate(np.split(rng.permutation(there), np.cumsum(leaving)[:-1])):
            arriving[later].append(part)
    return present[1:]


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
