"""A hash table from numbers to numbers that looks up whole columns at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.layout import Rows, Words

SMALLEST = 1 << 12
ROOM, GROWTH = 2, 4
"""The fewest slots per entry, which keeps probes short, and the factor by which a table grows at least."""
HALF = np.uint64(32)


class WordTable:
    """Keeps the first word added for each name, by open addressing.

    Names are random, not zero, and mostly in ascending order. A name's slot is where it would be if they were evenly
    spread, so a column is looked up in the order of memory.

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
        """Which names are known, and their words (undefined for the others)."""
        known, words = np.zeros(len(names), dtype=np.bool_), np.zeros(len(names), dtype=np.uint64)
        rows, slots = np.arange(len(names)), self._slots(names)
        while self._count and len(rows):
            there = self._names.take(slots)
            same = there == names.take(rows)
            hits = np.flatnonzero(same)
            known[rows.take(hits)] = True
            words[rows.take(hits)] = self._words.take(slots.take(hits))
            further = np.flatnonzero(~same & (there != 0))
            rows, slots = rows.take(further), self._next(slots.take(further))
        return known, words

    def add(self, names: Words, words: Words) -> None:
        """Add words, except for names that are known or repeated."""
        if not (names[1:] > names[:-1]).all():
            names, first = np.unique(names, return_index=True)
            words = words.take(first)
        self._make_room(len(names))
        slots = self._slots(names)
        while len(names):
            free = self._names.take(slots) == 0
            empty = np.flatnonzero(free)
            self._names[slots.take(empty)] = names.take(empty)  # if several names share a slot, the last one gets it
            here = self._names.take(slots) == names
            new = np.flatnonzero(here & free)
            self._words[slots.take(new)] = words.take(new)
            self._count += len(new)
            left = np.flatnonzero(~here)
            names, words, slots = names.take(left), words.take(left), self._next(slots.take(left))

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

    def _slots(self, names: Words) -> Rows:
        return ((names >> HALF) * np.uint64(len(self._names)) >> HALF).astype(np.intp)

    def _next(self, slots: Rows) -> Rows:
        following = slots + 1
        following[following == len(self._names)] = 0
        return following
