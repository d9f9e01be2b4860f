"""What devices must do, in other words than theirs: the cell they are in, and the chances of what they draw."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from protocols.mechanisms.places.area import KEPT
from protocols.randomness.sampling import SLOTS, WORD, Table
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


def exact(table: Table, kind: int = 0) -> list[Fraction]:
    """The probabilities of a table, exactly."""
    integers = [int(number) for number in table.integers[kind]]
    owned, cuts = integers[: table.symbols], [0, *integers[table.symbols :], WORD]
    left = Fraction(SLOTS - table.filled, SLOTS)
    return [Fraction(slots, SLOTS) + left * Fraction(cuts[i + 1] - cuts[i], WORD) for i, slots in enumerate(owned)]
