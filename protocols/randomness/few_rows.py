"""What `drawing` does for few rows, in numpy. It defines what the compiled loops for many rows must do."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import numpy as np

from protocols.arrays.aliases import Column, Mask, Places, ShortWords, Whole, Words
from protocols.arrays.columns import smallest_unsigned

NEIGHBOURS = 8
"""Devices whose words share blocks: as many as a block has words of 16 bits."""


class Starts(NamedTuple):
    """Where the words of each row begin: at row * apart + ((device - first) * count & within).

    >>> devices = np.array([9, 15], dtype=np.uint64)
    >>> Starts(devices, 0, 8, 7).of(4).tolist(), Starts(devices, 8, 0, (1 << 64) - 1).of(4).tolist()
    ([4, 12], [4, 28])
    """

    devices: Words
    first: int
    apart: int
    within: int

    def of(self, count: int) -> Words:
        """The start of every row that has `count` words."""
        inside = (self.devices - np.uint64(self.first)) * np.uint64(count) & np.uint64(self.within)
        return np.arange(len(self.devices), dtype=np.uint64) * np.uint64(self.apart) + inside


def blocks_alone(count: int) -> int:
    """How many blocks hold `count` words in a row, whichever of the neighbours they belong to.

    >>> blocks_alone(1), blocks_alone(4), blocks_alone(13)
    (1, 1, 3)
    """
    return -(-(NEIGHBOURS - gcd(NEIGHBOURS, count) + count) // NEIGHBOURS)


def counter_blocks(devices: Words, tweaks: Whole, first: int, count: int) -> Words:
    """(device, tweak | number << 32) for each row and number."""
    counters = np.empty((len(devices), count, 2), dtype="<u8")
    numbers = (np.arange(count, dtype=np.uint64) + np.uint64(first)) << np.uint64(32)
    counters[:, :, 0] = devices[:, None]
    counters[:, :, 1] = tweaks.astype(np.uint32)[:, None] | numbers[None, :]
    return counters


def shared_blocks(devices: Words, tweaks: Whole, first: int, count: int) -> Words:
    """The counter blocks of each row's words: eight neighbours share a stream."""
    before = (devices % np.uint64(NEIGHBOURS)) * np.uint64(count) // np.uint64(NEIGHBOURS)
    counters = counter_blocks(devices // np.uint64(NEIGHBOURS), tweaks, first, blocks_alone(count))
    counters[:, :, 1] += before[:, None] << np.uint64(32)
    return counters


def further_blocks(devices: Words, tweaks: Whole, first: int, left: Places, count: int) -> Words:
    """(device, tweak | (first + place) << 32) for some words, each named by its place among those of all rows."""
    rows, places = np.divmod(left, count)
    counters = counter_blocks(devices[rows], tweaks[rows], first, 1)[:, 0]
    counters[:, 1] += places.astype(np.uint64) << np.uint64(32)
    return counters


def extremes(devices: Words) -> tuple[int, int, bool]:
    """The lowest and the highest device, and whether they are numbered in a row."""
    in_a_row = np.array_equal(devices - devices[0], np.arange(len(devices), dtype=np.uint64))
    return int(devices.min()), int(devices.max()), in_a_row


def look_up(
    slots: Column,
    filled: int,
    words: ShortWords,
    starts: Starts,
    exempt: tuple[Whole, Mask] | None,
    symbols: Column,
) -> Places:
    """symbols = slots[0, words], of exempt ones slots[kind, word]; where words are `filled` or more."""
    count = symbols.shape[1]
    words = words[starts.of(count)[:, None] + np.arange(count, dtype=np.uint64)]
    symbols[:] = slots[0].take(words)
    if exempt is not None:
        own, cells = np.flatnonzero(exempt[1]), exempt[0][exempt[1]]
        symbols[own, cells // 8] = slots[1 + cells % 8, words[own, cells // 8]]
    return np.flatnonzero(words >= filled)


def resolve(cuts: Words, left: Places, words: Words, exempt: tuple[Whole, Mask] | None, symbols: Column) -> None:
    """Invert the cuts for some symbols, each named by its place among those of all rows."""
    rows, places = np.divmod(left, symbols.shape[1])
    kinds: Whole = np.zeros(len(left), dtype=np.int64)
    if exempt is not None:
        cells, there = exempt
        kinds = (there[rows] & (cells[rows] // 8 == places)) * (1 + cells[rows] % 8)
    symbols[rows, places] = invert(cuts, kinds, words)


def clear(column: Column, spare: int) -> None:
    """Clear the spare bits of each row's last symbol."""
    column[:, -1] &= ~column.dtype.type(spare)


def shift(cells: Whole, shifts: Column, k: int) -> Column:
    """cells + shifts, modulo k."""
    return np.asarray((cells.astype(np.int64) + shifts) % k, dtype=shifts.dtype)


def invert(cuts: Words, rows: Whole, words: Words) -> Column:
    """How many cuts of its row each word is not below."""
    below = [np.searchsorted(cuts[row], word, side="right") for row, word in zip(rows, words, strict=True)]
    return np.array(below, dtype=smallest_unsigned(cuts.shape[1] + 1))
