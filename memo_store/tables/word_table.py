"""A table from numbers to numbers that looks up whole columns at once."""

from __future__ import annotations

import numpy as np

from protocols.arrays import Mask, Words


class WordTable:
    """Keeps the first word added for each name, until it is changed. Names are in ascending order in memory.

    >>> table = WordTable()
    >>> table.add(np.array([5, 1 << 63, 5], dtype=np.uint64), np.array([50, 60, 70], dtype=np.uint64))
    >>> known, words = table.find(np.array([5, 6, 1 << 63], dtype=np.uint64))
    >>> known.tolist(), words[known].tolist(), len(table)
    ([True, False, True], [50, 60], 2)
    """

    def __init__(self) -> None:
        self.names = np.empty(0, dtype=np.uint64)
        self.words = np.empty(0, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self.names)

    def find(self, names: Words) -> tuple[Mask, Words]:
        """Which names are known, and their words (anything for the others)."""
        if not len(self):
            return np.zeros(len(names), dtype=np.bool_), np.zeros(len(names), dtype=np.uint64)
        rows = np.searchsorted(self.names, names)
        return self.names.take(rows, mode="clip") == names, self.words.take(rows, mode="clip")

    def add(self, names: Words, words: Words) -> None:
        """Add words, except for names that are known or repeated."""
        new = np.flatnonzero(~self.find(names)[0])
        names, first = np.unique(names[new], return_index=True)
        rows = np.searchsorted(self.names, names)
        self.names = np.insert(self.names, rows, names)
        self.words = np.insert(self.words, rows, words[new[first]])

    def change(self, names: Words, words: Words) -> None:
        """Give names that are known other words."""
        self.words[np.searchsorted(self.names, names)] = words
