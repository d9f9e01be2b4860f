"""`commuters`: a town on a grid, hour by hour: nights at home, commutes, work, evenings and weekends out.

Where a device is in an hour follows from its traits (drawn once per seed) and its plan for the day (drawn per seed
and day), so any hour is computed directly, with no state to carry.
"""

import numpy as np

from producers.scenarios.base import Presences, check_size, randomness
from protocols.arrays import Floats, Mask, Whole
from protocols.errors import ScenarioError
from protocols.mechanisms import Area

QUADRANTS = ("NW", "NE", "SW", "SE")
LONGEST_DWELL = 8
WORKERS = 0.6  # share of people who work from Monday to Friday
MOST_AREAS = 2_500  # a matrix of areas by areas is kept in memory
RHYTHM = np.interp(np.arange(24), [0, 3, 5, 8, 12, 18, 21, 24], [0.3, 0.15, 0.2, 0.8, 0.9, 1.0, 0.8, 0.3])
"""The activity of phones in each hour of the day, at most 1."""


Plan = tuple[Mask, Whole, Whole, Whole]
"""One day of all devices: which ones go to work; and from when, until when and where they go out."""


class Commuters:
    """One period per hour; hour 0 is midnight of a Monday.

    rows, columns  the grid; areas are named `r0c0` (top left) and on
    inside         of `place`: the cells of a survey's grid that are inside, row * columns + column; None: all
    activity       probability that a phone is seen in the busiest hour (nights and quiet phones are seen less)

    Attributes: `area`; `place`, the same as a cell of a survey's grid (`x0y0` is in the south-west);
    `transition`, from the quadrant of the hour before to the present one (`NW>SE`); `dwell`, how
    many hours the device has been in its area, this one included: `1` to `8`, and more count as 8 (in a survey, the
    range from 1 to 8).

    >>> town = Commuters(devices=2000, periods=48, seed=1, rows=4, columns=4)
    >>> night, noon = town.presences(3), town.presences(12)
    >>> len(night.devices) < len(noon.devices)
    True
    >>> town.attributes["area"][:2], town.attributes["transition"][:2], town.attributes["dwell"][-2:]
    (('r0c0', 'r0c1'), ('NW>NW', 'NW>NE'), ('7', '8'))
    """

    name = "commuters"

    def __init__(
        self,
        devices: int = 10_000,
        periods: int = 168,
        seed: int = 0,
        *,
        rows: int = 6,
        columns: int = 6,
        inside: tuple[int, ...] | None = None,
        activity: float = 0.8,
    ) -> None:
        check_size(devices, periods)
        if rows * columns > MOST_AREAS:
            raise ScenarioError(f"a grid of {rows} by {columns} has too many areas", f"at most {MOST_AREAS}")
        self.devices, self.periods, self.seed, self.activity = devices, periods, seed, activity
        places = Area(columns, rows, inside)
        self.attributes = {
            "area": tuple(f"r{row}c{column}" for row in range(rows) for column in range(columns)),
            "place": tuple(f"x{column}y{row}" for row, column in places.positions.tolist()),
            "transition": tuple(f"{origin}>{here}" for origin in QUADRANTS for here in QUADRANTS),
            "dwell": tuple(str(hours) for hours in range(1, LONGEST_DWELL + 1)),
        }
        rng = randomness(seed, "traits")
        row, column = np.divmod(np.arange(rows * columns), columns)
        to_centre = np.hypot(row - (rows - 1) / 2, column - (columns - 1) / 2)
        apart = np.hypot(np.subtract.outer(row, row), np.subtract.outer(column, column))
        scale = max(rows, columns) / 3
        uneven = rng.lognormal(0, 0.5, (2, rows * columns))  # areas differ, although the grid is regular
        # Homes spread widely around the centre. Work and outings are near the centre, and rather near home.
        self._pull = uneven[1] * np.exp(-to_centre / scale) * np.exp(-apart / scale)
        homes = uneven[0] * np.exp(-to_centre / (3 * scale))
        self._home = _draw_each(rng, homes[np.newaxis], np.zeros(devices, dtype=np.int64))
        self._work = self._destination(rng)
        middle_row, middle_column = ((of[self._home] + of[self._work]) // 2 for of in (row, column))
        self._halfway = middle_row * columns + middle_column
        self._worker = rng.random(devices) < WORKERS
        self._work_from = np.clip(np.rint(rng.normal(8.5, 1, devices)), 6, 12).astype(np.int64)
        self._work_to = self._work_from + np.clip(np.rint(rng.normal(8, 1, devices)), 4, 10).astype(np.int64)
        self._seen = rng.uniform(0.5, 1, devices)
        self._place = places.nearest((rows - 1 - row) * columns + column)
        self._quadrant = row * 2 // rows * 2 + column * 2 // columns

    def presences(self, period: int) -> Presences:
        """Which phones are seen in this hour: their area, the transition into it, and their dwell time."""
        plans = {day: self._plan(day) for day in {hour // 24 for hour in (period, period - LONGEST_DWELL + 1)}}
        seen = self._seen * (self.activity * RHYTHM[period % 24])
        devices = np.flatnonzero(randomness(self.seed, "presence", period).random(self.devices) < seen)
        area, before, *earlier = (self._area(period - ago, plans)[devices] for ago in range(LONGEST_DWELL))
        transition = self._quadrant[before] * len(QUADRANTS) + self._quadrant[area]
        stayed = np.logical_and.accumulate([past == area for past in (before, *earlier)])  # 1, 2, 3 ... hours ago
        dwell = np.count_nonzero(stayed, axis=0).astype(np.int64)
        values = {"area": area, "place": self._place[area], "transition": transition, "dwell": dwell}
        return Presences(period, devices.astype(np.uint64), values)

    def _area(self, hour: int, plans: dict[int, Plan]) -> Whole:
        """The area of every device in this hour, seen or not. Also for hours before 0, so that hour 0 has a past."""
        (works, out_from, out_to, out_cell), hour = plans[hour // 24], hour % 24
        area = np.where((out_from <= hour) & (hour < out_to), out_cell, self._home)
        on_the_way = works & ((hour == self._work_from - 1) | (hour == self._work_to))
        area = np.where(on_the_way, self._halfway, area)
        return np.where(works & (self._work_from <= hour) & (hour < self._work_to), self._work, area)

    def _plan(self, day: int) -> Plan:
        rng = randomness(self.seed, "plan", day + 1)  # from day -1 on, which has the hours before 0
        n, weekend = self.devices, day % 7 >= 5
        works = self._worker & (rng.random(n) < (0.0 if weekend else 0.93))
        goes_out = rng.random(n) < np.where(works, 0.3, 0.6 if weekend else 0.45)
        out_from = np.where(works, self._work_to + 1, rng.integers(9, 20, n))
        out_to = np.where(goes_out, np.minimum(out_from + rng.integers(1, 5, n), 24), out_from)
        return works, out_from, out_to, self._destination(rng)

    def _destination(self, rng: np.random.Generator) -> Whole:
        """An area for every device, drawn with the weights of its home."""
        return _draw_each(rng, self._pull, self._home)


def _draw_each(rng: np.random.Generator, weights: Floats, row: Whole) -> Whole:
    """Draw a column for each entry of `row`, by the weights of that row.

    All rows' cumulative weights are laid end to end, row r from r to r + 1, so that one search serves everyone.
    """
    cumulative = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    cumulative[:, -1] = 1
    ends = (cumulative + np.arange(len(weights))[:, np.newaxis]).ravel()
    drawn = np.searchsorted(ends, row + rng.random(len(row)), side="right")
    return np.asarray(np.minimum(drawn - row * weights.shape[1], weights.shape[1] - 1), dtype=np.int64)
