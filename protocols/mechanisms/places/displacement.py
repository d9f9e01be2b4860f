"""A round of noise on places: displaced by the law, moved to the nearest cell inside (PROTOCOLS 10)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from protocols.arrays.aliases import Column, Floats, Whole
from protocols.arrays.columns import smallest_unsigned
from protocols.errors import InfeasibleError
from protocols.mechanisms.places.law import ANYWHERE, WORD, cuts
from protocols.mechanisms.rounds import MatrixRound
from protocols.randomness.drawing import MANY, invert
from protocols.randomness.keystream import Draws
from protocols.randomness.sampling import below

DENSE = 1024  # cells up to which the whole channel matrix is computed


class PlanarRound(MatrixRound):
    """Noise on the cells of a grid: `rate` is what one cell side of distance costs.

    >>> noise = PlanarRound(3, 2, 1.0)
    >>> noise.matrix.sum(axis=1).round(12).tolist(), bool(np.ptp(np.diff(noise.logs[:2, 0])) < 1e-9)
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], True)
    """

    columns: int
    rows: int
    rate: float

    def __init__(self, columns: int, rows: int, rate: float) -> None:
        for name, given in (("columns", columns), ("rows", rows), ("rate", rate), ("known_logs", None)):
            object.__setattr__(self, name, given)

    @property
    def cells(self) -> int:
        return self.columns * self.rows

    @property
    def numbers(self) -> dict[str, float]:  # type: ignore[override]
        """What its table follows from."""
        return {"rate": self.rate}

    @property
    def chances(self) -> Floats:
        """The law as floats: [row, column] of the displacement, from (-(rows - 1), -(columns - 1)) on."""
        pieces = np.diff(cuts(self.columns, self.rows, self.rate), prepend=np.uint64(0))
        return np.asarray(pieces.astype(np.float64).reshape(2 * self.rows - 1, -1) / WORD)

    @cached_property
    def matrix(self) -> Floats:
        """P(cell y | cell x), from the integers that devices draw with; for grids of up to `DENSE` cells."""
        if self.cells > DENSE:
            raise InfeasibleError(
                f"a grid of {self.cells:,} cells: the matrix of its channel is too large to go through",
                f"it is computed for up to {DENSE:,} cells: use larger cells, or audit with --only place",
            )
        law = self.chances.ravel()
        across, up = np.arange(1 - self.columns, self.columns), np.arange(1 - self.rows, self.rows)
        found = np.empty((self.cells, self.cells))
        for cell in range(self.cells):
            row, column = divmod(cell, self.columns)
            inside = (row + up).clip(0, self.rows - 1)[:, None] * self.columns + (column + across).clip(
                0, self.columns - 1
            )
            found[cell] = np.bincount(inside.ravel(), law, self.cells)
        return np.asarray(found + ANYWHERE / WORD)

    def sample(self, cells: Whole, draws: Draws) -> Column:
        """The noisy cell of each row."""
        words = draws.blocks(1).view("<u8")
        table = cuts(self.columns, self.rows, self.rate)
        zeros = np.zeros(len(cells), dtype=np.uint8)
        drawn = invert(table[None], zeros, words[:, 0], len(draws) >= MANY).astype(np.int64)
        up, across = np.divmod(drawn, 2 * self.columns - 1)
        row, column = np.divmod(cells.astype(np.int64), self.columns)
        row = (row + up - (self.rows - 1)).clip(0, self.rows - 1)
        column = (column + across - (self.columns - 1)).clip(0, self.columns - 1)
        found = np.where(drawn == len(table), below(self.cells, words[:, 1]), row * self.columns + column)
        return np.asarray(found.astype(smallest_unsigned(self.cells)))
