"""A hash table from numbers to numbers that looks up whole columns at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Words

SMALLEST = 1 << 12
ROOM, GROWTH = 2, 4
"""The fewest slots per entry, which keeps probes short, and the factor by which a table grows at least."""


class WordTable:
    """Keeps the first word added for each name, until it is changed, by open addressing.

    Names are random, not zero, and mostly in ascending order. A name's slot is where it would be if they were evenly
    spread, so a column is looked up in the order of memory. The loops are compiled (word_loops.py).

    >>> table = WordTable()
    >>> table.add(np.array([5, 1 << 63, 5], dtype=np.uint64), np.array([50, 60, 70], dtype=np.uint64))
    >>> known, words = table.find(np.array([5, 6, 1 << 63], dtype=np.uint64))
    >>> known.tolist(), words[known].tolist(), len(table)
    ([True, False, True], [50, 60], 2)
    """

    def __init__(self, expected: int = 0) -> None:
        """With room for so many entries: to grow costs more than to add."""
        self._clear(max(SMALLEST, ROOM * expected))

    def __len__(self) -> int:
        return self._count

    def entries(self) -> tuple[Words, Words]:
        """All names and their words."""
        filled = np.flatnonzero(self._names)
        return self._names.take(filled), self._words.take(filled)

    def find(self, names: Words) -> tuple[NDArray[np.bool_], Words]:
        """Which names are known, and their words (0 for the others)."""
        from memo_store.tables.word_loops import find

        known, words = np.empty(len(names), dtype=np.bool_), np.empty(len(names), dtype=np.uint64)
        find(self._names, self._words, names, known, words)
        return known, words

    def add(self, names: Words, words: Words) -> None:
        """Add words, except for names that are known or repeated."""
        from memo_store.tables.word_loops import add

        self._make_room(len(names))
        self._count += add(self._names, self._words, np.ascontiguousarray(names), np.ascontiguousarray(words))

    def change(self, names: Words, words: Words) -> None:
        """Give names that are known other words."""
        from memo_store.tables.word_loops import change

        change(self._names, self._words, np.ascontiguousarray(names), np.ascontiguousarray(words))

    def _make_room(self, more: int) -> None:
        needed = ROOM * (self._count + more)
        if needed > len(self._names):
            held = self.entries()
            self._clear(max(needed, GROWTH * len(self._names)))
            self.add(*held)

    def _clear(self, slots: int) -> None:
        self._names = np.zeros(slots, dtype=np.uint64)
        self._words = np.zeros(slots, dtype=np.uint64)
        self._count = 0
