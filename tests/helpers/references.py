"""What devices must do, in other words than theirs: the cell that they are in."""

import numpy as np

from hearsay_device.attributes import KEPT
from protocols.survey import Grid


def settled(grid: Grid, x: float, y: float, last: int | None) -> int:
    """The cell of a device: its last one, until it is more than a quarter of a cell outside of it."""
    if last is not None:
        row, column = grid.area.positions[last].tolist()
        across, up = (x - grid.origin[0]) / grid.cell, (y - grid.origin[1]) / grid.cell
        across, up = min(max(across, 0), grid.columns), min(max(up, 0), grid.rows)
        if abs(across - column - 0.5) <= KEPT and abs(up - row - 0.5) <= KEPT:
            return last
    return int(grid.cells_at(np.array([x]), np.array([y]))[0])
