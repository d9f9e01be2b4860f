"""A hash table from numbers to numbers that looks up whole columns at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.layout import Rows, Words

SMALLEST = 1 << 12
ROOM, GROWTH = 2, 4
"""The fewest slots per entry, which keeps probes short, and the factor by which a table grows."""


class WordTable:
    """Keeps the first word added for each name, by open addressing.

    Names are random, not zero, and mostly in ascending order. A name's slot is its leading bits, so a column is looked
    up in the order of memory.

    >>> table = WordTable()
    >>> table.add(np.array([5, 1 << 63, 5], dtype=np.uint64), np.array([50, 60, 70], dtype=np.uint64))
    >>> known, words = table.find(np.array([5, 6, 1 << 63], dtype=np.uint64))
    >>> known.tolist(), words[known].tolist()
    ([True, False, True], [50, 60])
    """

    def __init__(self) -> None:
        self._clear(SMALLEST)

    def entries(self) -> tuple[Words, Words]:
        """All names and their words."""
        filled = self._names != 0
        return self._names[filled], self._words[filled]

    def find(self, names: Words) -> tuple[NDArray[np.bool_], Words]:
        """Which names are known, and their words (undefined for the others)."""
        known, words = np.zeros(len(names), dtype=bool), np.zeros(len(names), dtype=np.uint64)
        rows, slots = np.arange(len(names)), self._slots(names)
        while len(rows):
            there = self._names[slots]
            hit = there == names[rows]
            known[rows[hit]] = True
            words[rows[hit]] = self._words[slots[hit]]
            further = ~hit & (there != 0)
            rows, slots = rows[further], self._next(slots[further])
        return known, words

    def add(self, names: Words, words: Words) -> None:
        """Add words, except for names that are known or repeated."""
        names, first = np.unique(names, return_index=True)
        words = words[first]
        self._make_room(len(names))
        slots = self._slots(names)
        while len(names):
            free = self._names[slots] == 0
            self._names[slots[free]] = names[free]  # if several names share a slot, the last one gets it
            here = self._names[slots] == names
            new = here & free
            self._words[slots[new]] = words[new]
            self._count += int(np.count_nonzero(new))
            names, words, slots = names[~here], words[~here], self._next(slots[~here])

    def _make_room(self, more: int) -> None:
        size = len(self._names)
        while size < ROOM * (self._count + more):
            size *= GROWTH
        if size > len(self._names):
            held = self.entries()
            self._clear(size)
            self.add(*held)

    def _clear(self, slots: int) -> None:
        self._names = np.zeros(slots, dtype=np.uint64)
        self._words = np.zeros(slots, dtype=np.uint64)
        self._count = 0

    def _slots(self, names: Words) -> Rows:
        return (names >> np.uint64(65 - len(self._names).bit_length())).astype(np.intp)

    def _next(self, slots: Rows) -> Rows:
        return (slots + 1) & (len(self._names) - 1)
