"""Hysteresis: a person keeps the last cell until a position is more than a quarter of a cell outside of it.

So does a device. Positions are spooled as parts of cells, each a quarter of a side long, which decide whether a
position is within a quarter of another cell. The last cells are true places: whoever stores them seals them.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from producers.files.answers import PARTS, QUARTERS
from protocols.arrays import Devices, Mask, Whole
from protocols.respondent import UNKNOWN
from protocols.survey import Attribute, Grid


class Stays:
    """The last cells of all devices, for the attributes whose values are positions."""

    def __init__(self, attributes: Sequence[Attribute], positions: Mapping[str, object]) -> None:
        self._grids = [
            (place, attribute.name, attribute.grid)
            for place, attribute in enumerate(attributes)
            if attribute.name in positions and attribute.grid is not None
        ]
        self._devices: Devices = np.empty(0, dtype=np.uint64)  # ascending
        self._cells = np.empty((0, len(self._grids)), dtype=np.int64)
        self._new: list[tuple[Devices, Whole]] = []

    def __bool__(self) -> bool:
        """Whether there is anything to remember: some values are positions."""
        return bool(self._grids)

    def settle(self, events: NDArray[np.void]) -> None:
        """Parts become cells: those of their positions, or the last one of their device if that is near enough."""
        for column, (place, _, grid) in enumerate(self._grids):
            parts = events["values"][:, place].astype(np.int64)
            last = self._last(events["device"], column)
            cells = np.where(parts == UNKNOWN, UNKNOWN, grid.area.nearest(np.maximum(parts, 0) // PARTS))
            stays = (parts != UNKNOWN) & (last != UNKNOWN)
            stays[stays] = near(grid, parts[stays], last[stays])
            events["values"][:, place] = np.where(stays, last, cells)

    def fill(self, devices: Devices, values: dict[str, Whole]) -> None:
        """Devices, ascending, without a position in this period are in their last cell, if there is one.

        What they report is noted, for `keep`.
        """
        for column, (_, name, _) in enumerate(self._grids):
            values[name] = np.where(values[name] == UNKNOWN, self._last(devices, column), values[name])
        if self._grids:
            self._new.append((devices, np.stack([values[name] for _, name, _ in self._grids], axis=1)))

    def keep(self) -> bytes:
        """Make the cells of this period the last ones, and return them all, for `restore`."""
        devices = np.concatenate([*(devices for devices, _ in self._new), self._devices])
        cells = np.concatenate([*(cells for _, cells in self._new), self._cells])
        self._devices, newest = np.unique(devices, return_index=True)  # who reports has a new cell, or the last one
        self._cells, self._new = cells[newest], []
        content = BytesIO()
        np.savez(content, devices=self._devices, cells=self._cells)
        return content.getvalue()

    def restore(self, kept: bytes) -> None:
        with np.load(BytesIO(kept), allow_pickle=False) as found:
            self._devices, self._cells = found["devices"], found["cells"]

    def _last(self, devices: Devices, column: int) -> Whole:
        if not len(self._devices):
            return np.full(len(devices), UNKNOWN, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._devices, devices), len(self._devices) - 1)
        return np.where(self._devices[place] == devices, self._cells[place, column], UNKNOWN)


def near(grid: Grid, parts: Whole, cells: Whole) -> Mask:
    """Whether positions are in their cells, or at most a quarter of a cell outside of them.

    >>> grid = Grid(at=(47, 6), cell=100, columns=4, rows=2)
    >>> near(grid, np.array([PARTS * 1 + 0, PARTS * 1 + 1, PARTS * 5 + 4]), np.array([0, 0, 1])).tolist()
    [True, False, False]
    """
    number, part = np.divmod(parts, PARTS)
    own = np.stack(np.divmod(number, grid.columns), axis=1)
    quarters = QUARTERS * own + np.stack(np.divmod(part, QUARTERS), axis=1)
    apart = quarters - QUARTERS * grid.area.positions[cells]
    return np.asarray(((apart >= -1) & (apart <= QUARTERS)).all(axis=1))
