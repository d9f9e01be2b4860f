"""A place is a position, not a cell: no two positions within the radius lose more than the level."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from hearsay_device.attributes import Grid as DeviceGrid
from protocols.arrays import Floats, Mask
from protocols.errors import SurveyError
from protocols.mechanisms.catalogue import build_for_places
from protocols.mechanisms.mechanism import Budget
from protocols.mechanisms.places.area import KEPT, Area
from protocols.mechanisms.places.rounds import PlanarChannel
from protocols.survey.grid import Grid
from tests.helpers.references import settled
from tests.helpers.surveys import scheme_with

LEVEL, STEP = 1.0, 1 / 8  # of a cell side: a lattice that has all borders of cells, and all at which a cell is left
WHOLE: dict[str, Any] = {"crs": "own", "cell": 100, "columns": 5, "rows": 4}
BAY = {**WHOLE, "inside": ["x0-4y0", "x0-1y1", "x3-4y1", "x0-1y2", "x4y2", "x0-4y3"]}
RING = {**WHOLE, "columns": 9, "inside": ["x0-8y0", "x0y1", "x8y1", "x0y2", "x8y2", "x0-8y3"]}


def lattice(grid: Grid) -> Floats:
    """Positions in and around a grid, [position, (x, y)]."""
    across, up = (np.arange(-0.5, size + 0.5 + STEP, STEP) * grid.cell for size in (grid.columns, grid.rows))
    return np.stack([part.ravel() for part in np.meshgrid(across, up)], axis=1)


def possible(grid: Grid, positions: Floats, kept: float) -> Mask:
    """[position, cell]: whether a device there can be in a cell, whichever it was in before."""
    middles = (grid.area.positions[:, ::-1] + 0.5) * grid.cell
    nearest = positions.clip(0, np.array([grid.columns, grid.rows]) * grid.cell)
    found = (np.abs(nearest[:, None] - middles) <= kept * grid.cell).all(axis=2)
    found[np.arange(len(positions)), grid.cells_at(*positions.T)] = True
    return np.asarray(found)


def worst(grid: Grid, losses: Floats, radius: float, kept: float) -> float:
    """The largest loss between cells in which two devices can be whose positions are at most `radius` apart."""
    cells = possible(grid, lattice(grid), kept).astype(np.float32)
    near = (squares(grid) <= radius**2).astype(np.float32)
    return float(losses[(cells.T @ near @ cells) > 0].max())


@cache
def squares(grid: Grid) -> Floats:
    """Of the distances between any two positions."""
    x, y = lattice(grid).T
    return np.asarray((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)


def losses_of(channel: object) -> Floats:
    """[cell, cell]: the largest log-ratio of any report."""
    assert isinstance(channel, PlanarChannel)
    logs = np.log(channel.matrix)
    return np.asarray((logs[:, None] - logs).max(axis=2))


@pytest.mark.parametrize("radius", [20, 80, 160])
@pytest.mark.parametrize("grid", [WHOLE, BAY])
@pytest.mark.parametrize("rounds", [("geo",), ("geo_inf", "geo")])
def test_no_two_positions_within_the_radius_lose_more_than_the_level(
    grid: dict[str, Any], radius: int, rounds: tuple[str, ...]
) -> None:
    reaches = {name: {"level": LEVEL * (1 + (name == "geo_inf")), "radius": radius} for name in rounds}
    scheme = scheme_with({"name": "place", "grid": grid, **reaches})
    on = Grid.model_validate(grid)
    found = worst(on, losses_of(scheme.questions[0].channel), radius, KEPT)
    assert found <= LEVEL * (1 + 1e-9)
    # Inside an area the promise counts as if a device also stayed in cells outside, which it is never in.
    assert found > (0.9 if grid is WHOLE else 0.6) * LEVEL
    stated = {loss.metres: loss.per_report for loss in scheme.guarantees.of_places()["place"]}
    assert stated[radius] == pytest.approx(LEVEL)
    for metres in (0.0, 2.0 * radius):
        assert worst(on, losses_of(scheme.questions[0].channel), metres, KEPT) <= stated[metres] * (1 + 1e-9)


def test_half_a_cell_of_hysteresis_and_losses_between_middles_would_break_the_promise() -> None:
    """The rule before terms of version 2, and each half of it alone."""
    grid, radius = Grid.model_validate(WHOLE), 20
    before = losses_of(build_for_places("geo-grid", grid.area, Budget(LEVEL * grid.cell / radius)).channel())
    assert worst(grid, before, radius, kept=1) > 14 * LEVEL and worst(grid, before, radius, KEPT) > 7 * LEVEL
    scheme = scheme_with({"name": "place", "grid": WHOLE, "geo": {"level": LEVEL, "radius": radius}})
    assert worst(grid, losses_of(scheme.questions[0].channel), radius, kept=1) > 1.9 * LEVEL


@pytest.mark.parametrize("declared", [WHOLE, BAY])
def test_a_device_is_in_the_cells_that_the_promise_counts_with(declared: dict[str, Any]) -> None:
    grid = Grid.model_validate(declared)
    positions = lattice(grid)[::7]
    keys = ("cell", "columns", "rows")
    own = DeviceGrid({key: declared[key] for key in keys}) if grid.area.inside is None else None
    found = np.zeros((len(positions), grid.k), dtype=np.bool_)
    for row, (x, y) in enumerate(positions.tolist()):
        cells = [settled(grid, x, y, last) for last in (None, *range(grid.k))]
        found[row, cells] = True
        if own is not None:
            assert [own.cell_of({"x": x, "y": y}, last) for last in (None, *range(grid.k))] == cells
    assert (found == possible(grid, positions, KEPT)).all()


@pytest.mark.parametrize("seed", range(8))
def test_distances_inside_are_those_of_all_pairs_of_cells(seed: int) -> None:
    """Also where cells outside move far, and the nearest pairs are not those whose images are furthest apart."""
    random = np.random.default_rng(seed)
    area = Area(7, 6, tuple(sorted(random.choice(42, 2 + seed, replace=False).tolist())))
    cells = np.stack(np.divmod(np.arange(42), 7), axis=1)
    closest = np.hypot(*np.maximum(0, np.abs(cells[:, None] - cells) - 2 * KEPT).transpose(2, 0, 1))
    images = area.nearest(np.arange(42))
    for far in (0, 0.5, 0.8, 1.6, 2.5, 4, 9):
        assert area.apart(far) == pytest.approx(area.distances[images[:, None], images][closest <= far].max())


def test_a_hole_at_which_near_positions_move_far_apart_is_refused() -> None:
    """Failure would look like: two metres in the middle of a lake tell apart like its two shores."""
    with pytest.raises(SurveyError, match="two positions 20 m apart can be in cells 316 m apart") as caught:
        scheme_with({"name": "place", "grid": RING, "geo": {"level": 1, "radius": 20}})
    assert "close the hole" in str(caught.value.hint)
    scheme_with({"name": "place", "grid": {**RING, "inside": None}, "geo": {"level": 1, "radius": 20}})
