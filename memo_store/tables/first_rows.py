"""Rows by name, in memory: the first row of a name counts, and never changes."""

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Mask, Words

T = TypeVar("T", bound=np.generic)


class FirstRows(Generic[T]):
    """An array of rows, and the name of each: 8 bytes."""

    def __init__(self, nothing: NDArray[T]) -> None:
        """`nothing`: no rows, of the shape and type of all later ones."""
        self.names = np.empty(0, dtype=np.uint64)  # ascending
        self.rows = nothing

    def find(self, names: Words) -> tuple[Mask, NDArray[T]]:
        """Which names are known, and their rows (anything for the others)."""
        if not len(self.names):
            return np.zeros(len(names), dtype=np.bool_), np.zeros((len(names), *self.rows.shape[1:]), self.rows.dtype)
        found = np.minimum(np.searchsorted(self.names, names), len(self.names) - 1)
        return self.names.take(found) == names, self.rows.take(found, axis=0)

    def add(self, names: Words, rows: NDArray[T]) -> None:
        """Names in any order, also more than once. Those that are known keep their rows."""
        new = np.flatnonzero(~self.find(names)[0])
        added, first = np.unique(names[new], return_index=True)
        where = np.searchsorted(self.names, added)
        self.names = np.insert(self.names, where, added)
        self.rows = np.insert(self.rows, where, rows[new[first]], axis=0)
