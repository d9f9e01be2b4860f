"""`virtual-humans`: people drawn so that they match every published count of a festival week exactly.

They are drawn from aggregates: how many different people came in every window of days, how many have each value of an
attribute, how many had each value on each day. Attributes that the table does not relate to one another are drawn
independently.
"""

import json
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from producers.people import ABSENT, Flows, deal, flows_of, proportional, shuffled, whole
from producers.scenarios.base import Presences, check_size, randomness
from protocols.errors import ScenarioError

MOST_SWAP_ROUNDS = 300


def festival_week() -> dict[str, Any]:
    """The published counts, with their source and licence. Days are numbered from 1.

    `unions` are people who came on at least one of these days (`1-3`).
    `attributes` do not change from day to day; `daily` has the people of each day, and `distinct` how many showed one,
    two, three ... different values.

    >>> week = festival_week()
    >>> week["people"], len(week["days"]), week["cite"]
    (88935, 7, 'doi:10.1109/iwcmc48107.2020.9148138')
    """
    table = resources.files("producers") / "data" / "msfimu.json"
    found: dict[str, Any] = json.loads(table.read_text("utf-8"))
    return found


class VirtualHumans:
    """One device per person, one period per day.

    devices  the number of people; by default that of the table, 88,935. Another number scales every count in
             proportion, and rounding keeps the totals
    periods  how many of the table's days, from the first on; by default all

    >>> week = VirtualHumans(devices=1000, seed=1)
    >>> week.periods, list(week.attributes)[-1], len(week.presences(4).devices)
    (7, 'visit_duration', 438)
    """

    name = "virtual-humans"

    def __init__(self, devices: int | None = None, periods: int | None = None, seed: int = 0) -> None:
        published = festival_week()
        self.devices = published["people"] if devices is None else devices
        self.periods = len(published["days"]) if periods is None else periods
        check_size(self.devices, self.periods)
        if self.periods > len(published["days"]):
            raise ScenarioError(
                f"periods = {self.periods}, but the table has {len(published['days'])} days", "choose fewer periods"
            )
        fixed, daily = published["attributes"], published["daily"]
        self.attributes = {name: tuple(counts) for name, counts in (fixed | daily).items()}
        rng = randomness(seed, "people")
        self._present = deal(_flows(published, self.devices), rng)
        self._fixed = {
            name: shuffled(rng, proportional(list(counts.values()), self.devices)) for name, counts in fixed.items()
        }
        self._daily = {
            name: self._draw_daily(rng, list(counts.values()), published["distinct"][name])
            for name, counts in daily.items()
        }

    def presences(self, period: int) -> Presences:
        """Which people came on this day, and their values."""
        devices = self._present[period]
        values = {name: column[devices].astype(np.int64) for name, column in self._fixed.items()}
        values |= {name: columns[devices, period].astype(np.int64) for name, columns in self._daily.items()}
        return Presences(period, devices.astype(np.uint64), values)

    def _draw_daily(
        self, rng: np.random.Generator, published: list[list[int]], distinct: list[int]
    ) -> NDArray[np.int16]:
        """Value per person and day: matches every day's counts, and how many different values people showed."""
        values = np.full((self.devices, len(published[0])), ABSENT, dtype=np.int16)
        for day, counts in enumerate(zip(*published, strict=True)):
            present = self._present[day]
            if len(present):
                values[present, day] = shuffled(rng, proportional(counts, len(present)))
        swap_towards(rng, values, proportional(distinct, self.devices))
        return values


def _flows(published: dict[str, Any], people: int) -> Flows:
    """The flows between days of the published windows, or of as many people in the same proportions."""
    days = len(published["days"])
    unique = np.zeros((days + 1, days + 1), dtype=np.int64)
    for window, count in published["unions"].items():
        first, _, last = window.partition("-")
        unique[int(first), int(last or first)] = count
    flows = flows_of(unique)
    return flows if people == published["people"] else whole(flows * (people / published["people"]))


def distinct_values(values: NDArray[np.int16]) -> NDArray[np.int64]:
    """The number of different values along the last axis, without `ABSENT`.

    >>> distinct_values(np.array([[2, 2, ABSENT], [0, 1, 2]], dtype=np.int16)).tolist()
    [1, 3]
    """
    new = np.diff(np.sort(values), prepend=np.int16(ABSENT)) != 0
    return np.asarray(np.count_nonzero(new, axis=-1), dtype=np.int64)


def swap_towards(rng: np.random.Generator, values: NDArray[np.int16], wanted: NDArray[np.int64]) -> None:
    """Swap values between people, each within one day, until `wanted[j]` people show j + 1 different values.

    A swap within a day does not change that day's counts. Pairs are proposed at random, and a swap is kept if it brings
    the cumulative counts closer to the wanted ones. The festival week is matched exactly. For very few people the
    scaled counts may be impossible; then the nearest result found is kept.
    """
    people = np.bincount(distinct_values(values), minlength=len(wanted) + 1)[1:]
    excess = np.cumsum(people - wanted).tolist()
    for turn in range(MOST_SWAP_ROUNDS):
        if not any(excess):
            break
        day = turn % values.shape[1]
        present = rng.permutation(np.flatnonzero(values[:, day] != ABSENT))
        pairs = present[: len(present) // 2 * 2].reshape(2, -1)
        rows = values[pairs]
        before = distinct_values(rows)
        rows[..., day] = rows[::-1, :, day].copy()
        after = distinct_values(rows)
        kept = []
        for pair in np.flatnonzero((before != after).any(axis=0)).tolist():
            moved = excess.copy()
            for was, becomes in zip(before[:, pair].tolist(), after[:, pair].tolist(), strict=True):
                for shown in range(min(was, becomes), max(was, becomes)):
                    moved[shown - 1] += 1 if becomes < was else -1
            if sum(map(abs, moved)) < sum(map(abs, excess)):
                excess = moved
                kept.append(pair)
        values[pairs[:, kept], day] = values[pairs[::-1, kept], day]
