"""Areas: the cells that places can be in, as positions on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import hypot

import numpy as np

from protocols.arrays.aliases import Floats, Whole


@dataclass(frozen=True)
class Area:
    """A grid of columns and rows, and which of its cells are inside: numbers row * columns + column, ascending.

    >>> area = Area(4, 3, (0, 1, 6))
    >>> area.k, area.widest == hypot(2, 1), Area(4, 3).k
    (3, True, 12)
    """

    columns: int
    rows: int
    inside: tuple[int, ...] | None = None
    """None: all of them."""

    @property
    def k(self) -> int:
        return self.columns * self.rows if self.inside is None else len(self.inside)

    @cached_property
    def positions(self) -> Whole:
        """[cell, (row, column)] of each cell inside."""
        cells = np.arange(self.k) if self.inside is None else np.array(self.inside, dtype=np.int64)
        return np.stack(np.divmod(cells, self.columns), axis=1)

    @cached_property
    def squares(self) -> Whole:
        """The squares of the distances between any two cells inside, in cell sides."""
        apart = self.positions[:, None] - self.positions
        return np.asarray((apart * apart).sum(axis=2))

    @property
    def distances(self) -> Floats:
        return np.sqrt(self.squares)

    def nearest(self, numbers: Whole) -> Whole:
        """The nearest cell inside, by its place among those inside, for numbers row * columns + column.

        The first of several that are as near.

        >>> Area(4, 3, (0, 1, 6)).nearest(np.array([0, 6, 8, 2])).tolist()
        [0, 2, 0, 1]
        """
        if self.inside is None:
            return numbers
        different, place = np.unique(numbers, return_inverse=True)
        apart = np.stack(np.divmod(different, self.columns), axis=1)[:, None] - self.positions
        return np.asarray((apart * apart).sum(axis=2).argmin(axis=1)[place])

    @property
    def widest(self) -> float:
        """The largest distance of two cells inside, in cell sides."""
        if self.inside is None:
            return hypot(self.columns - 1, self.rows - 1)
        return float(self.distances.max())
