"""How many people came on which exact days, from counts per union of days alone.

An operator often knows, per day and per union of days, how many different people were seen, but not how many came on
*exactly* Monday and Wednesday. With D days there are 2^D - 1 such combinations c, with x_c people each. A count means

    n(S) = sum of x_c over the combinations c that share a day with S            (A x = b, x >= 0)

1. Whether there is any x: a linear program finds the smallest change of the counts that allows one. If it is not zero,
   the error names the counts that would have to change.
2. Which combinations can be non-zero: linear programs again. The others are left out.
3. Of all x, the one of maximum entropy, which assumes nothing beyond the counts. It has the form x = exp(lambda A),
   where lambda minimises the convex dual  sum_c exp(lambda A)_c - lambda b  (Newton's method, one unknown per count).
4. Whole numbers: an integer program rounds every x_c down or up so that A x = b still holds.

For a full table of consecutive days there is a closed form: the counts determine how many people go from day i directly
to day j, and maximum entropy makes these steps a Markov chain. The general method above needs no such table.

Days are bits: combination 0b101 is the first and the third day, and so is the union 0b101 in a count's key.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Floats, Mask
from protocols.errors import ScenarioError

MOST_DAYS = 10


def people_seen(days: int, unions: list[int]) -> Mask:
    """The matrix A: row per union, column per combination 1..2^days - 1, whether they share a day.

    >>> people_seen(2, [0b01, 0b11]).astype(int).tolist()
    [[1, 0, 1], [1, 1, 1]]
    """
    shared = np.bitwise_and.outer(np.array(unions), np.arange(1, 2**days))
    return np.asarray(shared != 0)


def combinations_from_unions(days: int, counts: Mapping[int, int]) -> NDArray[np.int64]:
    """People per combination of days (index 0, no days, is 0), from people per union of days.

    Ten people, six on the first day and seven on the second: three must have come twice.

    >>> combinations_from_unions(2, {0b01: 6, 0b10: 7, 0b11: 10}).tolist()
    [0, 3, 4, 3]
    >>> combinations_from_unions(2, {0b01: 6, 0b10: 7, 0b11: 14})
    Traceback (most recent call last):
    protocols.errors.ScenarioError: the counts of people contradict one another: days 1-2 cannot be 14 (13 would do)
    """
    everyone = 2**days - 1
    if not 1 <= days <= MOST_DAYS:
        raise ScenarioError(f"presence over {days} days cannot be solved", f"use between 1 and {MOST_DAYS} days")
    if everyone not in counts:
        raise ScenarioError(
            f"the count of {day_names(everyone)} is missing", "add it: it is the number of people in all"
        )
    seen = people_seen(days, list(counts)).astype(np.float64)
    wanted = np.array(list(counts.values()), dtype=np.float64)
    _refuse_contradictions(seen, wanted, list(counts))
    possible = _possible(seen, wanted)
    people = np.zeros(2**days, dtype=np.int64)
    if possible.any():
        seen = seen[:, possible]
        people[1:][possible] = _whole(seen, wanted, maximum_entropy(seen, wanted))
    return people


def day_names(union: int) -> str:
    """A union in words.

    >>> day_names(0b100), day_names(0b1110), day_names(0b101)
    ('day 3', 'days 2-4', 'days 1+3')
    """
    days = [day + 1 for day in range(union.bit_length()) if union >> day & 1]
    if len(days) == 1:
        return f"day {days[0]}"
    if days[-1] - days[0] == len(days) - 1:
        return f"days {days[0]}-{days[-1]}"
    return "days " + "+".join(map(str, days))


def _refuse_contradictions(seen: Floats, wanted: Floats, unions: list[int]) -> None:
    """Find the smallest sum of changes |A x - b| over all x >= 0, and name the counts that would have to change."""
    rows, columns = seen.shape
    slack = np.eye(rows)
    cost = np.concatenate([np.zeros(columns), np.ones(2 * rows)])
    least = _linear_program(cost, np.hstack([seen, slack, -slack]), wanted, [(0, None)] * len(cost))
    possible = seen @ least[:columns]
    wrong = np.flatnonzero(np.abs(possible - wanted) > 1e-3)
    if len(wrong):
        named = [f"{day_names(unions[i])} cannot be {wanted[i]:.0f} ({possible[i]:.10g} would do)" for i in wrong]
        raise ScenarioError("the counts of people contradict one another: " + ", ".join(named))


def _possible(seen: Floats, wanted: Floats) -> Mask:
    """The combinations that are non-zero in some solution: only they have a finite lambda.

    Each round rewards a small amount of every combination not yet found. When a round finds no new one, the others are
    impossible.
    """
    columns = seen.shape[1]
    found = np.zeros(columns, dtype=np.bool_)
    rewarded, free = (0, 0.01), (0, None)  # the small bound makes a round find many combinations
    twice = np.hstack([seen, seen])
    while not found.all():
        reward = np.concatenate([np.where(found, 0.0, -1.0), np.zeros(columns)])
        best = _linear_program(reward, twice, wanted, [rewarded] * columns + [free] * columns)
        new = (best.reshape(2, columns).sum(axis=0) > 1e-6) & ~found
        if not new.any():
            break
        found |= new
    return found


def maximum_entropy(seen: Floats, wanted: Floats) -> Floats:
    """The x > 0 of maximum entropy with A x = b, by damped Newton steps on the dual.

    Three fair coins per person; the 125 of 1000 who threw no head are not in the table:

    >>> seen = people_seen(3, [0b001, 0b010, 0b100, 0b111]).astype(float)
    >>> maximum_entropy(seen, np.array([500.0, 500.0, 500.0, 875.0])).round(6).tolist()
    [125.0, 125.0, 125.0, 125.0, 125.0, 125.0, 125.0]
    """
    total = wanted.max()
    share = wanted / total
    multiplier = np.zeros(len(wanted))
    multiplier[np.argmax(wanted)] = -np.log(seen.shape[1])  # the row of all days is all ones: start from uniform

    def dual(at: Floats) -> tuple[float, Floats]:
        with np.errstate(over="ignore"):  # the line search shortens a step that overflows
            x = np.exp(at @ seen)
        return float(x.sum() - share @ at), x

    value, x = dual(multiplier)
    for _ in range(200):
        slope = seen @ x - share
        if np.abs(slope).max() < 1e-10:
            break
        step = np.linalg.lstsq((seen * x) @ seen.T, -slope, rcond=1e-13)[0]
        length = 1.0
        while length > 1e-9 and not dual(multiplier + length * step)[0] <= value + 1e-4 * length * (slope @ step):
            length /= 2
        multiplier = multiplier + length * step
        value, x = dual(multiplier)
    return np.asarray(x * total)


def _whole(seen: Floats, wanted: Floats, x: Floats) -> NDArray[np.int64]:
    """Round every x_c down or up, at the least total distance, so that every count stays as it is.

    Some tables have fractional solutions only. Then the counts may change, as little as possible, and by at most one
    person or 0.1 %, whichever is more.
    """
    down = np.floor(x + 1e-9)
    missing = wanted - seen @ down
    farther = 1 - 2 * (x - down)  # the distance from x of rounding up, minus that of rounding down
    up = _integer_program(farther, seen, missing, np.zeros_like(x), np.ones_like(x))
    if up is None:
        slack = np.ones(len(wanted))
        up = _integer_program(
            np.concatenate([farther, 1_000 * slack, 1_000 * slack]),
            np.hstack([seen, np.diag(slack), np.diag(-slack)]),
            missing,
            np.concatenate([-np.minimum(down, 1), 0 * slack, 0 * slack]),
            np.concatenate([np.full_like(x, 2), np.inf * slack, np.inf * slack]),
        )
    people = down if up is None else down + up[: len(x)]
    if (np.abs(seen @ people - wanted) > np.maximum(1, wanted / 1000)).any():
        raise ScenarioError("no whole numbers of people are within 0.1 % of these counts", "give fewer unions")
    return people.astype(np.int64)


def _linear_program(cost: Floats, matrix: Floats, equals: Floats, bounds: list[tuple[float, float | None]]) -> Floats:
    """The z of least cost with matrix z = equals."""
    from scipy.optimize import linprog

    solved = linprog(cost, A_eq=matrix, b_eq=equals, bounds=bounds, method="highs")
    if solved.x is None:
        raise ScenarioError(f"the solver failed on the counts of people: {solved.message}", "give fewer unions")
    return np.asarray(solved.x)


def _integer_program(cost: Floats, matrix: Floats, equals: Floats, low: Floats, high: Floats) -> Floats | None:
    """Whole numbers z of low cost with matrix z = equals; None if none was found."""
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    solved = milp(
        cost,
        constraints=LinearConstraint(sparse.csr_matrix(matrix), equals, equals),
        bounds=Bounds(low, high),
        integrality=np.ones(len(cost), dtype=np.int64),
        options={"node_limit": 2_000, "mip_rel_gap": 0.05},  # a limit of nodes, not seconds: reproducible
    )
    return None if solved.x is None else np.round(solved.x)
