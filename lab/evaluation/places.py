"""Errors of estimated places: how far people would have to be moved, and how wrong the shares of areas are.

The squared error of a cell says little about a map: a share that is one cell off counts like one at the other end. So
the least distance is found by linear programming, with steps to the eight neighbouring cells (docs/evaluation.md).
"""

from math import sqrt
from typing import Any

import numpy as np

from protocols.arrays import Floats
from protocols.survey import Attribute, Grid

MOST_CELLS = 1024  # of a plan by linear programming: a larger grid is divided into blocks of cells, each taken as one
NEIGHBOURS = 1.5  # cell sides: the eight neighbours of a cell are nearer


def radius(place: Attribute) -> float:
    """The distance in metres that the budgets of an attribute of places are for."""
    reach = place.geo or place.geo_inf
    assert reach is not None, "only places with geo have a radius"
    return reach.radius


def place_errors(place: Attribute, estimates: Floats, shares: Floats) -> tuple[float, float]:
    """Metres that people must be moved, and the root mean square error of the groups' shares (NaN without groups)."""
    assert place.grid is not None
    groups = np.array([np.isin(place.values, members) for members in place.groups.values()])
    wrong = sqrt(np.square(groups @ (estimates - shares)).mean()) if len(groups) else np.nan
    return moved(estimates, shares, place.grid), wrong


def moved(estimates: Floats, shares: Floats, grid: Grid) -> float:
    """The earth mover's distance of two distributions over the cells of a grid, in metres.

    >>> grid = Grid(at=(47, 6), cell="500m", columns=3, rows=2)
    >>> here, there = np.array([1.0, 0, 0, 0, 0, 0]), np.array([0, 0, 0, 0.5, 0, 0.5])
    >>> round(moved(here, there, grid)), moved(here, here, grid)
    (854, 0.0)
    """
    from scipy.optimize import linprog  # takes a while to import

    block = 1
    while -(-grid.rows // block) * -(-grid.columns // block) > MOST_CELLS:
        block += 1
    surplus = np.zeros((grid.rows, grid.columns))
    surplus[tuple(grid.area.positions.T)] = estimates - shares
    for axis, size in enumerate(surplus.shape):
        surplus = np.add.reduceat(surplus, np.arange(0, size, block), axis=axis)
    if not np.abs(surplus).max() > 1e-12:
        return 0.0
    balance, lengths = _network(*surplus.shape)
    wanted = (surplus - surplus.mean()).ravel()
    found = linprog(lengths, A_eq=balance, b_eq=wanted[:-1], method="highs-ds")  # the last follows from the others
    assert found.success and found.fun is not None, "any surplus can be moved"
    return grid.cell * block * float(found.fun)


def _network(rows: int, columns: int) -> tuple[Any, Floats]:
    """What each step between neighbours takes from one cell and brings to the other, and the lengths of the steps."""
    from scipy.sparse import coo_array
    from scipy.spatial import KDTree

    cells = np.indices((rows, columns)).reshape(2, -1).T
    one, other = KDTree(cells).query_pairs(NEIGHBOURS, output_type="ndarray").T
    tails, heads = np.concatenate([one, other]), np.concatenate([other, one])
    step = np.arange(len(tails))
    entries = np.repeat([1.0, -1.0], len(step))
    places = np.concatenate([tails, heads]), np.concatenate([step, step])
    balance = coo_array((entries, places), (len(cells), len(step))).tocsr()
    return balance[:-1], np.hypot(*(cells[tails] - cells[heads]).T)
