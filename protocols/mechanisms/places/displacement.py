"""A round of noise on places: displaced by the law, moved to the nearest cell inside (PROTOCOLS 10)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from protocols.arrays.aliases import Column, Floats, Whole, Words
from protocols.arrays.columns import smallest_unsigned
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.convolution import Convolution
from protocols.mechanisms.places.law import ANYWHERE, WORD, cuts
from protocols.mechanisms.places.rounds import PlaceRound
from protocols.randomness.keystream import Draws
from protocols.randomness.sampling import below, invert


class PlanarRound(PlaceRound):
    """Noise on the cells of a grid: `rate` is what one cell side of distance costs.

    >>> noise = PlanarRound(3, 2, 1.0)
    >>> noise.matrix.sum(axis=1).round(12).tolist(), bool(np.ptp(np.diff(noise.logs[:2, 0])) < 1e-9)
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], True)
    """

    carries = True

    def __init__(self, columns: int, rows: int, rate: float, through: float | None = None) -> None:
        self._set(area=Area(columns, rows), rate=rate, through=rate if through is None else through)

    @property
    def columns(self) -> int:
        return self.area.columns

    @property
    def rows(self) -> int:
        return self.area.rows

    @property
    def numbers(self) -> dict[str, float]:  # type: ignore[override]
        """What its table follows from."""
        return {"rate": self.rate}

    @property
    def chances(self) -> Floats:
        """The law as floats: [row, column] of the displacement, from (-(rows - 1), -(columns - 1)) on."""
        pieces = np.diff(cuts(self.columns, self.rows, self.rate), prepend=np.uint64(0))
        return np.asarray(pieces.astype(np.float64).reshape(2 * self.rows - 1, -1) / WORD)

    @property
    def table(self) -> Words:
        return cuts(self.columns, self.rows, self.rate)[None]

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Each report is likeliest from its own cell; those at the border also have what is moved inside.

        >>> noise = PlanarRound(4, 3, 1.0)
        >>> low, high = noise.bounds
        >>> bool((noise.matrix >= low).all() and (noise.matrix <= high + 1e-15).all() and high[0] > high[5])
        True
        >>> bool(abs(noise.best_guesses - noise.matrix.max(axis=0).sum()) < 1e-9)
        True
        """
        law, every = self.chances, ANYWHERE / WORD
        up, across = (np.array([1] + [0] * (size - 2) + [2]) for size in (self.rows, self.columns))
        rows = slice(self.rows - 1, self.rows), slice(None, self.rows), slice(self.rows - 1, None)
        columns = slice(self.columns - 1, self.columns), slice(None, self.columns), slice(self.columns - 1, None)
        own = np.array([[law[r, c].sum() for c in columns] for r in rows])
        return np.full(self.cells, every), np.asarray(own[up[:, None], across].ravel() + every)

    def forward(self, shares: Floats) -> Floats:
        plane = shares.reshape(*shares.shape[:-1], self.rows, self.columns)
        return Convolution.of(self.columns, self.rows, self.rate).forward(plane).reshape(shares.shape)

    def backward(self, votes: Floats) -> Floats:
        plane = votes.reshape(*votes.shape[:-1], self.rows, self.columns)
        return Convolution.of(self.columns, self.rows, self.rate).backward(plane).reshape(votes.shape)

    @cached_property
    def matrix(self) -> Floats:
        """P(cell y | cell x), from the integers that devices draw with; for grids of up to `DENSE` cells."""
        self.refuse_many()
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
        table = self.table
        zeros = np.zeros(len(cells), dtype=np.uint8)
        drawn = invert(table, zeros, words[:, 0]).astype(np.int64)
        up, across = np.divmod(drawn, 2 * self.columns - 1)
        row, column = np.divmod(cells.astype(np.int64), self.columns)
        row = (row + up - (self.rows - 1)).clip(0, self.rows - 1)
        column = (column + across - (self.columns - 1)).clip(0, self.columns - 1)
        found = np.where(drawn == table.shape[1], below(self.cells, words[:, 1]), row * self.columns + column)
        return np.asarray(found.astype(smallest_unsigned(self.cells)))
