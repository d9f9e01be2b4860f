"""Flows from some windows only: those of maximum entropy, and the windows that contradict each other.

Maximum entropy gives a set of days a weight of e^(the sum of the multipliers of the windows that it meets). A set of
days is a path 0 -> i -> j -> .. -> N + 1, and each window met is charged to the one arc that enters it. So sums over
all 2^N sets are sums over paths, and the multipliers are found by steps of Newton's method on the convex dual

    paths(multipliers) - multipliers * people + sum of slack * multiplier^2 / 2

The slack of a window grows with the square of its error; one without error is followed exactly.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.people.flows import arcs, met
from producers.people import flows_of
from protocols.arrays import Floats, Mask, Whole
from protocols.errors import ScenarioError

MOST_WINDOWS = 3000  # Newton's method solves as many equations, about 20 times
MOST_STEPS = 200
RIDGE = 1e-10
TRUST = 0.01  # of entropy, beside errors of one person: with more, windows are missed by more than their errors
PEOPLE = 1e-5  # by so much windows may be missed before flows are made whole


@dataclass(frozen=True, eq=False)
class Windows:
    """Different people of windows of days: `bounds[:, 0]` to `bounds[:, 1]`, from 1 on; error 0 is exact."""

    bounds: Whole
    people: Floats
    error: Floats

    @property
    def days(self) -> int:
        return int(self.bounds.max())

    @property
    def horizon(self) -> int:
        """The longest window: nothing tells newcomers from people who were away for longer."""
        return int((self.bounds[:, 1] - self.bounds[:, 0]).max()) + 1

    def missed(self, unique: Whole) -> Floats:
        """By how many people each window differs from those of some flows."""
        return np.asarray(unique[self.bounds[:, 0], self.bounds[:, 1]] - self.people)


def fit(windows: Windows) -> Floats:
    """The flows of maximum entropy. Nobody returns after the longest window: see `rejoined` for those who do."""
    days, exact = windows.days, windows.error == 0
    if len(windows.people) > MOST_WINDOWS:
        raise ScenarioError(f"{len(windows.people):,} windows", f"give at most {MOST_WINDOWS:,}, or fewer days")
    if len(windows.people) == days * (days + 1) // 2 and exact.all():
        unique = np.zeros((days + 1, days + 1), dtype=np.int64)
        unique[tuple(windows.bounds.T)] = windows.people
        found = flows_of(unique)
        if (found >= 0).all():
            return found.astype(np.float64)
    _refuse_contradictions(windows)
    start, end = arcs(days, windows.horizon)
    counted = met(start, end, windows.bounds)
    empty = exact & (windows.people == 0)  # their multipliers would be infinite
    possible = ~counted[empty].any(axis=0)
    start, end, counted = start[possible], end[possible], counted[~empty][:, possible]
    followed = Windows(windows.bounds[~empty], windows.people[~empty], windows.error[~empty])
    flow = _Dual(followed, days, start, end, counted).minimum()
    fitted = np.zeros((days + 2, days + 2))
    fitted[start, end] = flow
    return fitted


class _Dual:
    """The dual, as a function of the multipliers of windows."""

    def __init__(self, windows: Windows, days: int, start: Whole, end: Whole, counted: Mask) -> None:
        self.start, self.end, self.size = start, end, days + 2
        self.counted = counted.astype(np.float64)
        self.people = windows.people
        self.slack = windows.error**2 * TRUST / max(float(windows.error.max()), TRUST)

    def minimum(self) -> Floats:
        """The flow of each arc at the minimum."""
        from scipy.optimize import minimize  # takes a while to import

        multipliers = np.zeros(len(self.people))
        longest = self.counted.sum(axis=1).argmax()  # all paths together weigh about as much as its people
        multipliers[longest] = np.log(max(self.people[longest], 1)) - np.log(2) * self.size
        options: Any = {"gtol": PEOPLE, "maxiter": MOST_STEPS, "max_trust_radius": np.inf}
        found: Any = minimize(self, multipliers, jac=True, hess=self._curvature, method="trust-exact", options=options)
        _, come, weight, go = self._paths(found.x)
        return np.asarray(come * weight * go)

    def __call__(self, multipliers: Floats) -> tuple[float, Floats]:
        """Its value and slope."""
        with np.errstate(over="ignore", invalid="ignore"):
            between, come, weight, go = self._paths(multipliers)
            value = between[0, -1] - multipliers @ self.people + self.slack @ multipliers**2 / 2
            slope = self.counted @ (come * weight * go) - self.people + self.slack * multipliers
        return (float(value) if np.isfinite(value) else np.inf), slope

    def _curvature(self, multipliers: Floats) -> Floats:
        """Two windows are entered by the same arc, or by two arcs of a path, one after the other."""
        between, come, weight, go = self._paths(multipliers)
        nodes, came, goes = np.eye(self.size), self.counted * come * weight, self.counted * weight * go
        ordered = came @ nodes[self.end] @ between @ nodes[self.start].T @ goes.T
        found = (came * go) @ self.counted.T + ordered + ordered.T + np.diag(self.slack)
        return np.asarray(found + RIDGE * np.diag(np.diag(found) + 1))

    def _paths(self, multipliers: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """The weight of all paths from one day to another; of each arc: of paths up to it, its own, and of those on."""
        arcs, weight = np.zeros((self.size, self.size)), np.exp(multipliers @ self.counted)
        arcs[self.start, self.end] = weight
        between = np.asarray(np.linalg.inv(np.eye(self.size) - arcs), dtype=np.float64)
        return between, between[0][self.start], weight, between[:, -1][self.end]


def _refuse_contradictions(windows: Windows) -> None:
    """Refuse exact windows that no people can have caused, and name those whose change would be the least in all."""
    from scipy.optimize import linprog  # takes a while to import
    from scipy.sparse import coo_array, csr_array, eye_array, hstack, vstack

    exact, (start, end) = windows.error == 0, arcs(windows.days, windows.horizon)
    bounds, people = windows.bounds[exact], windows.people[exact]
    if not len(people):
        return
    counted, columns = met(start, end, bounds).astype(np.float64), np.arange(len(start))
    rows, days = len(people), windows.days
    balance = (
        coo_array((np.ones(len(start)), (end, columns)), shape=(days + 2, len(start))).tocsr()[1:-1]
        - coo_array((np.ones(len(start)), (start, columns)), shape=(days + 2, len(start))).tocsr()[1:-1]
    )
    changes = hstack([csr_array(counted), eye_array(rows), -eye_array(rows)])
    kept = hstack([balance, csr_array((days, 2 * rows))])
    cost = np.concatenate([np.zeros(len(start)), np.ones(2 * rows)])
    wanted = np.concatenate([people, np.zeros(days)])
    matrix: Any = vstack([changes, kept])
    found: Any = linprog(cost, A_eq=matrix, b_eq=wanted, method="highs")
    assert found.status == 0, f"the least change was not found: {found.message}"
    added, removed = np.split(found.x[len(start) :], 2)
    wrong = np.flatnonzero(added + removed > 0.5)
    if len(wrong):
        named = [
            f"days {bounds[row, 0]} to {bounds[row, 1]} have {people[row]:,.0f}, and "
            f"{people[row] - added[row] + removed[row]:,.0f} would do"
            for row in wrong[:5].tolist()
        ]
        raise ScenarioError(
            f"no people can have caused these windows: {'; '.join(named)}{' ...' if len(wrong) > 5 else ''}",
            "correct them, or give their errors if they are estimates",
        )
