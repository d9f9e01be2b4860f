"""Flows of people with each value of lasting attributes.

Values and presence go together: who lives here comes more often. So each combination of values has flows of its own,
which add up to those of all people. They are the nearest, in entropy, to values that are independent of presence, with
which windows have as many people of each value as was published:

    share of a combination among the people of an arc  ~  its share of all people * e^(multipliers + potentials)

with the multipliers of the windows that count the arc, alone and with those of their length, and the potential of the
day where it ends less that of the day where it begins, for which as many of each combination arrive as leave. All are
found on the convex dual.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from lab.people.flows import met
from producers.people import ABSENT, Flows, whole
from protocols.arrays import Floats, Places, Values, Whole
from protocols.errors import ScenarioError

MOST_COMBINATIONS = 100
MOST_STEPS = 3000
SLACK_ALONE, SLACK_TOGETHER = 2.0, 0.2  # by how much windows may be missed, in squares of errors over the largest


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


@dataclass(frozen=True, eq=False)
class ByValue:
    """The different people of windows of days by value, `people[window, value]`, with errors; 0 is exact."""

    bounds: Whole
    people: Floats
    error: Floats

    def followed(self, start: Whole, end: Whole) -> tuple[Floats, Floats, Floats]:
        """What flows by value follow: by which arcs it is counted, its people, and by how much it may be missed.

        These are all windows, and those of each length together: how often people with a value come, and for how long,
        is much the same on all days, so it counts for more than what single windows say. Otherwise either their noise
        would be followed, or values that go with presence would be drawn to independence, which would count like a
        sample of all people if windows were missed as in a posterior distribution, by the squares of their errors.
        """
        lengths = self.bounds[:, 1] - self.bounds[:, 0]
        alone, together = np.eye(len(lengths)), (lengths == np.unique(lengths)[:, None]).astype(np.float64)
        rows = np.concatenate([alone, together])
        slack = np.concatenate([alone * SLACK_ALONE, together * SLACK_TOGETHER]) @ self.error**2
        counted = met(start, end, self.bounds).astype(np.float64)
        return rows @ counted, rows @ self.people, slack / max(float(self.error.max()), 1)

    @property
    def log_shares(self) -> Floats:
        total = np.maximum(self.people, 1e-9).sum(axis=0)
        return np.asarray(np.log(total / total.sum()))


def combinations(attributes: Sequence[ByValue]) -> Whole:
    """The place of each attribute's value, in each combination of values."""
    sizes = [asked.people.shape[1] for asked in attributes]
    if (found := int(np.prod(sizes))) > MOST_COMBINATIONS:
        raise ScenarioError(
            f"lasting attributes with {found:,} combinations of values",
            f"name fewer attributes, or with fewer values: at most {MOST_COMBINATIONS} combinations",
        )
    return np.array(list(product(*map(range, sizes))), dtype=np.int64).reshape(found, len(sizes))


def split(flows: Flows, attributes: Sequence[ByValue]) -> list[Flows]:
    """The flows of each of `combinations`; together they are the given ones."""
    fitted, done, found = _Dual(flows, attributes).fitted(), np.zeros_like(flows), []
    for together in np.cumsum(fitted, axis=0)[:-1]:
        found.append(whole(together, done, flows) - done)
        done = done + found[-1]
    return [*found, flows - done]


class _Dual:
    """The dual, as a function of the multipliers of windows by value, and of potentials of days by combination."""

    def __init__(self, flows: Flows, attributes: Sequence[ByValue]) -> None:
        choices = combinations(attributes)
        self.size = len(flows)
        self.start, self.end = np.nonzero(flows)
        self.given = flows[self.start, self.end].astype(np.float64)
        days = np.eye(self.size)[:, 1:-1]
        values = [np.eye(asked.people.shape[1])[choices[:, place]] for place, asked in enumerate(attributes)]
        # Rows: what each attribute follows, or days. Columns: which combinations share a multiplier.
        nothing = np.zeros((len(days.T), len(choices)))
        followed = [asked.followed(self.start, self.end) for asked in attributes]
        followed.append(((days[self.end] - days[self.start]).T, nothing, nothing))
        self.rows, self.people, self.slack = zip(*followed, strict=True)
        self.columns = [*values, np.eye(len(choices))]
        self.log_shares = sum(
            (own @ asked.log_shares for own, asked in zip(values, attributes, strict=True)), np.zeros(len(choices))
        )
        evenly = self.given[:, None] * np.exp(self.log_shares)
        spread = [np.abs(row) @ evenly @ column for row, column in zip(self.rows, self.columns, strict=True)]
        scales = [1 / np.sqrt(np.maximum(one, 1) + slack) for one, slack in zip(spread, self.slack, strict=True)]
        self.shapes, self.scale = [one.shape for one in scales], np.concatenate([one.ravel() for one in scales])

    def fitted(self) -> Floats:
        """The flows by combination before they are whole."""
        from scipy.optimize import minimize  # takes a while to import

        options: Any = {"maxiter": MOST_STEPS, "maxfun": 2 * MOST_STEPS, "ftol": 1e-14, "gtol": 1e-7, "maxcor": 30}
        found: Any = minimize(self, np.zeros(len(self.scale)), jac=True, method="L-BFGS-B", options=options)
        flows = np.zeros((len(self.log_shares), self.size, self.size))
        flows[:, self.start, self.end] = self._people(self._parts(found.x))[0].T
        return flows

    def __call__(self, scaled: Floats) -> tuple[float, Floats]:
        """Its value and slope."""
        held = self._parts(scaled)
        people, log_totals = self._people(held)
        value, slopes = float(self.given @ log_totals), []
        for row, column, one, wanted, slack in zip(self.rows, self.columns, held, self.people, self.slack, strict=True):
            value += float((slack * one**2 / 2 - one * wanted).sum())
            slopes.append((row @ people @ column - wanted + slack * one).ravel())
        return value, np.concatenate(slopes) * self.scale

    def _people(self, held: Sequence[Floats]) -> tuple[Floats, Floats]:
        """The people of each arc and combination, and the logarithm of the sum of all weights of each arc."""
        power = np.tile(self.log_shares, (len(self.given), 1))
        for row, column, one in zip(self.rows, self.columns, held, strict=True):
            power += row.T @ one @ column.T
        top = power.max(axis=1, keepdims=True)
        weights = np.exp(power - top)
        total = weights.sum(axis=1, keepdims=True)
        return self.given[:, None] * weights / total, (top + np.log(total)).ravel()

    def _parts(self, scaled: Floats) -> list[Floats]:
        """By attribute: multipliers of windows by value; and potentials of days by combination."""
        ends = np.cumsum([rows * columns for rows, columns in self.shapes])
        parts = np.split(scaled * self.scale, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]
