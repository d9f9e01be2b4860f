"""A reader who knows what a gap means: each report has at most one predecessor, and at most one successor.

A *flow* (i, j) is the number of reports of period j whose device reported last in period i; NEVER stands for never.
What is published is told as sums of flows, and linear programs find what else is certain then.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

NEVER = -1
Flow = tuple[int, int]
Weights = Mapping[Flow, float]
Seen = NDArray[np.bool_]  # [period, device]


def last_reports(seen: Seen) -> NDArray[np.int64]:
    """When each device reported last before a period: [period, device]."""
    periods = len(seen)
    found = np.full(seen.shape, NEVER)
    for period in range(1, periods):
        found[period] = np.where(seen[period - 1], period - 1, found[period - 1])
    return found


def flows_of(seen: Seen) -> dict[Flow, int]:
    """The flows of a collection."""
    before = last_reports(seen)
    found: dict[Flow, int] = {}
    for period, there in enumerate(seen):
        for earlier in range(NEVER, period):
            found[earlier, period] = int((before[period][there] == earlier).sum())
    return found


def window_flows(first: int, last: int) -> Weights:
    """The different devices of a window: reports whose device came last before it."""
    return {(i, j): 1.0 for j in range(first, last + 1) for i in range(NEVER, first)}


def new_flows(first: int, last: int, horizon: int | None = None) -> Weights:
    """The new devices of a window: never seen, or not for a horizon."""
    found = {}
    for j in range(first, last + 1):
        for i in range(NEVER, j):
            if i == NEVER or (horizon is not None and j - i >= horizon):
                found[i, j] = 1.0
    return found


@dataclass
class Reader:
    """What a reader has been told about the flows of so many periods."""

    periods: int
    told: list[tuple[Weights, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for period in range(self.periods):
            arrivals = {(i, period): -1.0 for i in range(NEVER, period)}
            successors = {(period, j): 1.0 for j in range(period + 1, self.periods)}
            self.tell(arrivals | successors, -np.inf, 0)

    def tell(self, weights: Weights, low: float, high: float) -> None:
        """This sum of flows is known to lie between two numbers."""
        self.told.append((weights, low, high))

    def range_of(self, weights: Weights) -> tuple[float, float]:
        """What is certain about a sum of flows."""
        places = {flow: place for place, flow in enumerate(self._flows())}
        rows: list[NDArray[np.float64]] = []
        limits: list[float] = []
        for known, low, high in self.told:
            row = _row(known, places)
            for sign, limit in ((1.0, high), (-1.0, -low)):
                if np.isfinite(limit):
                    rows.append(sign * row)
                    limits.append(limit)
        matrix = csr_matrix(np.array(rows))
        target = _row(weights, places)
        ends = []
        for sign in (1.0, -1.0):
            found = linprog(sign * target, A_ub=matrix, b_ub=limits, bounds=(0, None), method="highs")
            assert found.status in (0, 3), found.message  # solved, or without a limit
            ends.append(round(sign * found.fun, 6) if found.status == 0 else -sign * np.inf)
        return ends[0], ends[1]

    def _flows(self) -> Iterator[Flow]:
        return ((i, j) for j in range(self.periods) for i in range(NEVER, j))

    def certain(self, flows: Mapping[Flow, int], least: int) -> list[tuple[str, float, float]]:
        """Sets of reports, and of devices that stayed away, that are known to have 1 to `least` - 1."""
        found = []
        for name, weights in sets(self.periods):
            true = sum(flows[flow] * weight for flow, weight in weights.items())
            if not 0 < true < least:
                continue  # it is within what the reader knows, so it cannot be known to be few
            low, high = self.range_of(weights)
            assert low <= true <= high, f"{name}: {true} is outside {low} to {high}"
            if low > 0 and high < least:
                found.append((name, low, high))
        return found


def sets(periods: int) -> Iterator[tuple[str, Weights]]:
    """Single flows, and those who came in a period and did not come again until another one."""
    for j in range(periods):
        for i in range(NEVER, j):
            yield f"last in {i}, again in {j}", {(i, j): 1.0}
    for period in range(periods):
        for until in range(period + 1, periods):
            came = {(i, period): 1.0 for i in range(NEVER, period)}
            again = {(period, j): -1.0 for j in range(period + 1, until + 1)}
            yield f"of {period}, not back until {until}", came | again


def _row(weights: Weights, places: Mapping[Flow, int]) -> NDArray[np.float64]:
    row = np.zeros(len(places))
    for flow, weight in weights.items():
        row[places[flow]] = weight
    return row


# Collections.


def one_person_away() -> Seen:
    """60 regulars; on the second day one of them stays away, and comes again on the fourth."""
    groups = np.arange(240) // 60
    seen = np.stack([groups <= day for day in range(4)])
    seen[2, 41:60] = False
    seen[2, 180:] = False
    seen[1:3, 0] = False
    return seen


def one_of_a_week_away() -> Seen:
    """100 regulars, of whom 70 come each day; one of them does not come in the second week, and visitors do."""
    seen = np.zeros((14, 160), dtype=bool)
    for day in range(14):
        seen[day, 30 * (day % 2 == 0) : 70 + 30 * (day % 2 == 0)] = True
        if day >= 7:
            seen[day, 50] = False
            seen[day, 100 + (np.arange(40) + 10 * (day % 3)) % 60] = True
    return seen


def by_week(seen: Seen) -> Seen:
    """The same devices, week by week."""
    return seen.reshape(-1, 7, seen.shape[1]).any(axis=1)


def random_days(random: np.random.Generator, days: int, devices: int, least: float, most: float) -> Seen:
    """Devices that come with a chance of their own each day."""
    return random.random((days, devices)) < random.uniform(least, most, devices)
