"""Areas: the cells that places can be in, as positions on a grid."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import hypot, sqrt

import numpy as np

from hearsay_device.attributes import KEPT
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

    def apart(self, far: float) -> float:
        """How far apart the cells of two positions can be that are at most `far` apart, in cell sides (PROTOCOLS 10).

        >>> Area(9, 9).apart(0) == hypot(1, 1), Area(9, 9).apart(0.8) == hypot(2, 2)
        (True, True)
        >>> Area(9, 2, (0, 8)).apart(0)  # positions on both sides of the middle move to the two ends
        8.0
        """
        return _apart(self, far)

    @property
    def widest(self) -> float:
        """The largest distance of two cells inside, in cell sides."""
        if self.inside is None:
            return hypot(self.columns - 1, self.rows - 1)
        return float(self.distances.max())


@lru_cache(maxsize=256)
def _apart(area: Area, far: float) -> float:
    """Of cells i columns and j rows apart, that many steps can be between positions which are never closer than that.

    Roots are rounded correctly, and `far` was: whatever is possible is found.
    """
    beyond = [np.square(np.maximum(0, np.arange(size) - 2 * KEPT)) for size in (area.rows, area.columns)]
    up, across = np.nonzero(np.sqrt(beyond[0][:, None] + beyond[1]) <= far)
    steps = up * up + across * across
    if area.inside is None:
        return float(np.sqrt(steps.max()))
    images, gap = _images(area)
    most = 0
    for j, i, square in sorted(zip(up, across, steps, strict=True), key=lambda step: -step[2]):
        if min(sqrt(square) + 2 * gap, area.widest) <= sqrt(most):
            break  # no image is further than the gap from its cell, so no pair is left that is further apart
        rows, columns = area.rows - j, area.columns - i
        for one, other in (
            (images[:rows, :columns], images[j:, i:]),
            (images[:rows, i:], images[j:, :columns]),
        ):
            most = max(most, int(np.square(one - other).sum(axis=2).max()))
    return sqrt(most)


@lru_cache(maxsize=16)
def _images(area: Area) -> tuple[Whole, float]:
    """[row, column, (row, column)] of the cell inside that each cell of the rectangle moves to; the furthest move."""
    cells = np.arange(area.columns * area.rows)
    nearest = np.concatenate([area.nearest(some) for some in np.array_split(cells, -(-len(cells) // 1024))])
    images = area.positions[nearest]
    moves = np.square(images - np.stack(np.divmod(cells, area.columns), axis=1)).sum(axis=1)
    return images.reshape(area.rows, area.columns, 2), sqrt(moves.max())
