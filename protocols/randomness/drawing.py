"""The loops that take most of the time of drawing: which blocks to encrypt, and what their bits mean.

Fewer than `MANY` rows are drawn in numpy: a single device needs no compiler. More are drawn by compiled loops
(`drawing_loops`), which are imported at the first use.
"""

from __future__ import annotations

from functools import cache
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from protocols.arrays.aliases import Column, Mask, Places, ShortWords, Whole, Words
from protocols.arrays.columns import smallest_unsigned
from protocols.arrays.counting import frozen

MANY = 2048
NEIGHBOURS = 8
"""Devices whose words share blocks: as many as a block has words of 16 bits."""
Exempt = tuple[Whole, Mask]
"""For each row a cell, and whether it is there: then the row's symbol `cell // 8` is of the kind `1 + cell % 8`."""
NO_EXEMPT: Exempt = frozen(np.empty(0, dtype=np.int64)), frozen(np.empty(0, dtype=np.bool_))


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


@cache
def loops() -> Any:
    """The compiled loops. An import statement in each function would take as long as their smallest work."""
    from protocols.randomness import drawing_loops

    return drawing_loops


def blocks_alone(count: int) -> int:
    """How many blocks hold `count` words in a row, whichever of the neighbours they belong to.

    >>> blocks_alone(1), blocks_alone(4), blocks_alone(13)
    (1, 1, 3)
    """
    return -(-(NEIGHBOURS - gcd(NEIGHBOURS, count) + count) // NEIGHBOURS)


def counter_blocks(
    devices: Words, tweaks: Whole, first: int, blocks: int, count: int = 0, room: Words | None = None
) -> Words:
    """Counter blocks for each row, numbered from `first`: (device, tweak | number << 32); in `room`, if it is given.

    With a `count` of words, eight neighbours have one stream of blocks, and each of them the next words of it.

    >>> counter_blocks(np.array([7], dtype=np.uint64), np.array([5], dtype=np.uint32), 1, 2).tolist()
    [[[7, 4294967301], [7, 8589934597]]]
    >>> counters = counter_blocks(np.array([9, 15], dtype=np.uint64), np.array([5, 5], dtype=np.uint32), 0, 1, 4)
    >>> (counters >> np.array([0, 32], dtype=np.uint64)).tolist()
    [[[1, 0]], [[1, 3]]]
    """
    size = (len(devices), blocks, 2)
    counters: Words = np.empty(size, dtype="<u8") if room is None else room.reshape(size)
    if len(devices) >= MANY:
        loops().fill_counters(frozen(devices), _frozen_tweaks(tweaks), first, count, counters)
        return counters
    numbers = np.uint64(first) + np.arange(blocks, dtype=np.uint64)[None, :]
    if count:
        numbers = numbers + (devices % np.uint64(NEIGHBOURS) * np.uint64(count) // np.uint64(NEIGHBOURS))[:, None]
        devices = devices // np.uint64(NEIGHBOURS)
    counters[:, :, 0] = devices[:, None]
    counters[:, :, 1] = tweaks.astype(np.uint32)[:, None] | numbers << np.uint64(32)
    return counters


def further_blocks(devices: Words, tweaks: Whole, first: int, left: Places, count: int) -> Words:
    """A counter block of its own for each of some words, named by its place among the `count` words of all rows.

    >>> devices, tweaks = np.array([7, 8], dtype=np.uint64), np.array([5, 6], dtype=np.uint32)
    >>> (further_blocks(devices, tweaks, 1, np.array([5]), 3) >> np.array([0, 32], dtype=np.uint64)).tolist()
    [[8, 3]]
    """
    counters = np.empty((len(left), 2), dtype="<u8")
    if len(devices) >= MANY:
        loops().fill_further(frozen(devices), _frozen_tweaks(tweaks), first, left, count, counters)
        return counters
    rows, places = np.divmod(left, count)
    counters[:, 0] = devices[rows]
    counters[:, 1] = tweaks[rows].astype(np.uint32) | places.astype(np.uint64) + np.uint64(first) << np.uint64(32)
    return counters


def extremes(devices: Words) -> tuple[int, int, bool]:
    """The lowest and the highest device, and whether they are numbered in a row.

    >>> extremes(np.array([7, 8, 9], dtype=np.uint64)), extremes(np.array([7, 9, 8], dtype=np.uint64))
    ((7, 9, True), (7, 9, False))
    """
    if len(devices) >= MANY:
        low, high, in_a_row = loops().extremes(frozen(devices))
        return low, high, in_a_row
    in_a_row = np.array_equal(devices - devices[0], np.arange(len(devices), dtype=np.uint64))
    return int(devices.min()), int(devices.max()), in_a_row


def look_up(
    slots: Column,
    filled: int,
    words: ShortWords,
    starts: Starts,
    exempt: Exempt | None,
    first: int,
    symbols: Column,
    left: Places,
    found: int,
) -> int:
    """symbols = slots[0, words], from row `first` on; for an exempt symbol, among the slots of its kind.

    Places (flat) of words that are `filled` or more, which need further bits, are written to `left` after those found
    before. Returned is how many there are now.

    >>> slots, words = np.array([[4, 4, 5], [8, 8, 9]], dtype=np.uint8), np.array([0, 2, 1, 1], dtype=np.uint16)
    >>> symbols, left = np.zeros((3, 2), dtype=np.uint8), np.zeros(6, dtype=np.intp)
    >>> starts, exempt = Starts(np.arange(2, dtype=np.uint64), 0, 2, 0), (np.array([0, 8, 0]), np.arange(3) == 1)
    >>> look_up(slots, 2, words, starts, exempt, 1, symbols, left, 0), left[:1].tolist()
    (1, [3])
    >>> symbols.tolist()
    [[0, 0], [4, 9], [4, 4]]
    """
    rows, count = len(starts.devices), symbols.shape[1]
    cells, there = exempt or NO_EXEMPT
    if rows >= MANY:
        base = starts.first - (starts.first >> 63 << 64)  # as a signed number, which the loops take for the same
        spread = frozen(starts.devices), base, starts.apart, starts.within
        if starts.within:
            found = loops().look_up_from(*spread, words, slots, filled, first, symbols, left, found)
        else:
            found = loops().look_up(words, slots, filled, first * count, symbols.reshape(-1), left, found)
        if exempt is not None:
            loops().look_up_again(frozen(cells), frozen(there), *spread, words, slots, first, symbols)
        return int(found)
    words = words[starts.of(count)[:, None] + np.arange(count, dtype=np.uint64)]
    some = symbols[first : first + rows]
    some[:] = slots[0].take(words)
    if exempt is not None:
        own = np.flatnonzero(there[first : first + rows])
        places, kinds = np.divmod(cells[first + own], 8)
        some[own, places] = slots[1 + kinds, words[own, places]]
    more = np.flatnonzero(words >= filled)
    left[found : found + len(more)] = more + first * count
    return found + len(more)


def resolve(cuts: Words, left: Places, words: Words, exempt: Exempt | None, symbols: Column) -> None:
    """Replace some symbols, named by their places among those of all rows, by those that further words say.

    >>> symbols = np.zeros((2, 2), dtype=np.uint8)
    >>> resolve(np.array([[10, 20]], dtype=np.uint64), np.array([1]), np.array([15], dtype=np.uint64), None, symbols)
    >>> symbols.tolist()
    [[0, 1], [0, 0]]
    """
    cells, there = exempt or NO_EXEMPT
    if len(symbols) >= MANY:
        loops().resolve(cuts, left, words, frozen(cells), frozen(there), symbols)
        return
    rows, places = np.divmod(left, symbols.shape[1])
    kinds: Whole = np.zeros(len(left), dtype=np.int64)
    if exempt is not None:
        kinds = (there[rows] & (cells[rows] // 8 == places)) * (1 + cells[rows] % 8)
    symbols[rows, places] = invert(cuts, kinds, words)


def clear(column: Column, spare: int) -> None:
    """Clear the spare bits of each row's last symbol.

    >>> column = np.array([[255, 255]], dtype=np.uint8)
    >>> clear(column, 0xF0)
    >>> column.tolist()
    [[255, 15]]
    """
    if len(column) >= MANY:
        loops().clear(column, spare)
    else:
        column[:, -1] &= ~column.dtype.type(spare)


def shift(cells: Whole, shifts: Column, k: int) -> Column:
    """Symbols of 0..k-1, each shifted by 0..k-1 places, modulo k. The shifts may be overwritten.

    >>> shift(np.array([1, 2]), np.array([0, 1], dtype=np.uint8), 3).tolist()
    [1, 0]
    """
    if len(cells) >= MANY:
        loops().shift(frozen(cells), shifts, k)
        return shifts
    return np.asarray((cells.astype(np.int64) + shifts) % k, dtype=shifts.dtype)


def invert(cuts: Words, rows: Whole, words: Words) -> Column:
    """The symbol of each word: how many cuts of its row it is not below.

    >>> cuts = np.array([[10, 20], [5, 6]], dtype=np.uint64)
    >>> invert(cuts, np.array([0, 1]), np.array([10, 4], dtype=np.uint64)).tolist()
    [1, 0]
    """
    symbols = np.empty(len(words), dtype=smallest_unsigned(cuts.shape[1] + 1))
    if len(words) >= MANY:
        loops().invert(frozen(cuts), frozen(rows), frozen(words), symbols)
    else:
        symbols[:] = [np.searchsorted(cuts[row], word, side="right") for row, word in zip(rows, words, strict=True)]
    return symbols


def _frozen_tweaks(tweaks: Whole) -> Whole:
    """One tweak for all rows as it is: it has no column."""
    return tweaks if tweaks.strides == (0,) else frozen(tweaks)
