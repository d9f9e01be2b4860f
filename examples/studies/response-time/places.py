"""Places randomised by the devices' own code, and what they say about the true ones."""

from dataclasses import dataclass

import numpy as np
from incidents import Floats, Incidents, Whole
from scipy.spatial import cKDTree

from analytics.estimation.places import DIVISIONS, MOST_STEPS, advance, held_out, last_within
from protocols.mechanisms import Area, PlanarChannel
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Survey

MOST_CELLS = 16_000


@dataclass(frozen=True)
class Budget:
    """As the published table has them: the middles of two cells `radius` metres apart are told apart by `level`."""

    level: float
    radius: float

    @property
    def per_metre(self) -> float:
        return self.level / self.radius


@dataclass(frozen=True)
class Map:
    """A grid over all incidents and stations, in metres."""

    west: float
    south: float
    cell: float
    columns: int
    rows: int

    @classmethod
    def around(cls, incidents: Incidents) -> "Map":
        """The finest grid of whole tens of metres that has at most `MOST_CELLS` cells."""
        west, south = incidents.x.min(), incidents.y.min()
        width, height = np.ptp(incidents.x), np.ptp(incidents.y)
        cell = max(50.0, 10 * np.ceil(np.sqrt(max(width * height, 1.0) / MOST_CELLS) / 10))
        return cls(float(west), float(south), cell, int(width // cell) + 2, int(height // cell) + 2)

    def centres(self, cells: Whole) -> tuple[Floats, Floats]:
        row, column = np.divmod(cells.astype(np.int64), self.columns)
        return self.west + (column + 0.5) * self.cell, self.south + (row + 0.5) * self.cell

    def survey(self, budget: Budget) -> Survey:
        """The survey whose devices are the incidents: each reports its place once."""
        grid = {
            "crs": "metres of the study",
            "origin": [self.west, self.south],
            "cell": self.cell,
            "columns": self.columns,
            "rows": self.rows,
        }
        apart = self.cell * Area(self.columns, self.rows).apart(budget.radius / self.cell)  # of positions that near
        place = {"name": "place", "grid": grid, "geo": {"level": budget.per_metre * apart, "radius": budget.radius}}
        when = {"id": "response-time", "start": "2026-01-01T00:00:00Z", "period": "1d"}
        return Survey.model_validate({**when, "attributes": [place]})


def randomised(incidents: Incidents, around: Map, budget: Budget, seed: int) -> Whole:
    """The cell that the device of each incident reports."""
    scheme = Scheme(around.survey(budget))
    (question,) = scheme.questions
    grid = question.attribute.grid
    assert grid is not None
    respondent = Respondent(scheme, Keyring(seed.to_bytes(32, "big")))
    devices = np.arange(len(incidents), dtype=np.uint64)
    cells = grid.cells_at(incidents.x, incidents.y)
    return respondent.answers(question, devices, 0, cells).astype(np.int64)


def expected(incidents: Incidents, reported: Whole, around: Map, budget: Budget) -> tuple[Floats, Floats, Floats]:
    """The expected distance to the station in metres, east and north, given the reported cell and the station.

    Where the incidents of a station are is estimated from their reports, as a collector estimates places: the busiest
    station decides how many steps are taken. The chances of a displacement are public. Nothing else is used.
    """
    channel = Scheme(around.survey(budget)).questions[0].channel
    assert isinstance(channel, PlanarChannel)
    east, north = around.centres(np.arange(channel.k))
    found = np.empty((3, len(incidents)))
    stations, which = np.unique(np.stack([incidents.station_x, incidents.station_y]), axis=1, return_inverse=True)
    busiest = np.bincount(reported[which.ravel() == np.bincount(which.ravel()).argmax()], minlength=channel.k)
    steps = last_within(held_out(busiest, channel, MOST_STEPS, DIVISIONS), 0.0)
    for place, (x, y) in enumerate(stations.T):
        own = np.flatnonzero(which.ravel() == place)
        shares = advance(np.bincount(reported[own], minlength=channel.k) / len(own), channel, steps)
        figures = np.stack([np.hypot(east - x, north - y), east - around.west, north - around.south])
        likely = channel.support(shares * np.stack([np.ones(channel.k), *figures]))[:, reported[own]]
        found[:, own] = likely[1:] / likely[0]
    return found[0], found[1] + around.west, found[2] + around.south


def areas_of(incidents: Incidents, x: Floats, y: Floats) -> dict[str, Whole]:
    """The areas of points: those of the nearest true incident, because outlines are not needed then."""
    _, nearest = cKDTree(np.stack([incidents.x, incidents.y], axis=1)).query(np.stack([x, y], axis=1))
    return {name: column[nearest] for name, column in incidents.areas.items()}
