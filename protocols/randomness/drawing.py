"""The loops that take most of the time of drawing: which blocks to encrypt, and what their bits mean.

Fewer than `MANY` rows are drawn in numpy (`few_rows`): a single device needs no compiler. More are drawn by compiled
loops (`drawing_loops`), which are imported at the first use.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from protocols.arrays.aliases import Column, Mask, Places, ShortWords, Whole, Words
from protocols.arrays.columns import smallest_unsigned
from protocols.arrays.counting import frozen
from protocols.randomness import few_rows
from protocols.randomness.few_rows import Starts, blocks_alone

MANY = 2048
Exempt = tuple[Whole, Mask]
"""For each row a cell, and whether it is there: then the row's symbol `cell // 8` is of the kind `1 + cell % 8`."""
NO_EXEMPT: Exempt = frozen(np.empty(0, dtype=np.int64)), frozen(np.empty(0, dtype=np.bool_))


@dataclass(frozen=True)
class Lookup:
    """What symbols are drawn with.

    A word of 16 bits is a place among the slots of its kind. One that is `filled` or more needs 64 further bits, which
    are inverted by the kind's cuts.
    """

    slots: Column
    filled: int
    cuts: Words


@cache
def loops() -> Any:
    """The compiled loops. An import statement in each function would take as long as their smallest work."""
    from protocols.randomness import drawing_loops

    return drawing_loops


@cache
def counter_loops() -> Any:
    """The compiled loops that write counters, in the same way."""
    from protocols.randomness import counter_loops as module

    return module


def counter_blocks(devices: Words, tweaks: Whole, first: int, count: int) -> Words:
    """`count` counter blocks for each row, numbered from `first`: (device, tweak | number << 32).

    >>> counter_blocks(np.array([7], dtype=np.uint64), np.array([5], dtype=np.uint32), 1, 2).tolist()
    [[[7, 4294967301], [7, 8589934597]]]
    """
    if len(devices) * count < MANY:
        return few_rows.counter_blocks(devices, tweaks, first, count)
    counters = np.empty((len(devices), count, 2), dtype="<u8")
    counter_loops().fill_counters(frozen(devices), _frozen_tweaks(tweaks), first, counters)
    return counters


def shared_blocks(devices: Words, tweaks: Whole, first: int, count: int, room: Words | None = None) -> Words:
    """The counter blocks in which each row finds its words.

    Eight neighbours have one stream of blocks, numbered from `first`, and each of them the next `count` words of it.
    `room` is memory for many counters.

    >>> counters = shared_blocks(np.array([9, 15], dtype=np.uint64), np.array([5, 5], dtype=np.uint32), 0, 4)
    >>> (counters >> np.array([0, 32], dtype=np.uint64)).tolist()
    [[[1, 0]], [[1, 3]]]
    """
    if len(devices) < MANY:
        return few_rows.shared_blocks(devices, tweaks, first, count)
    size = (len(devices), blocks_alone(count), 2)
    counters = np.empty(size, dtype="<u8") if room is None else room.reshape(size)
    counter_loops().fill_shared(frozen(devices), _frozen_tweaks(tweaks), first, count, counters)
    return counters


def stream_blocks(group: int, groups: int, tweak: int, first: int, count: int, room: Words) -> Words:
    """`count` counter blocks for each of some streams that follow one another, in `room`.

    >>> stream_blocks(7, 1, 5, 1, 2, np.empty(4, dtype="<u8")).tolist()
    [[[7, 4294967301], [7, 8589934597]]]
    """
    if groups * count < MANY:
        numbers = np.uint64(group) + np.arange(groups, dtype=np.uint64)
        return few_rows.counter_blocks(numbers, np.broadcast_to(np.uint32(tweak), groups), first, count)
    counters = room.reshape(groups, count, 2)
    counter_loops().fill_streams(group, tweak | first << 32, counters)
    return counters


def further_blocks(devices: Words, tweaks: Whole, first: int, left: Places, count: int) -> Words:
    """A counter block of its own for each of some words, named by its place among the `count` words of all rows.

    >>> devices, tweaks = np.array([7, 8], dtype=np.uint64), np.array([5, 6], dtype=np.uint32)
    >>> (further_blocks(devices, tweaks, 1, np.array([5]), 3) >> np.array([0, 32], dtype=np.uint64)).tolist()
    [[8, 3]]
    """
    if len(devices) < MANY:
        return few_rows.further_blocks(devices, tweaks, first, left, count)
    counters = np.empty((len(left), 2), dtype="<u8")
    counter_loops().fill_further(frozen(devices), _frozen_tweaks(tweaks), first, left, count, counters)
    return counters


def extremes(devices: Words) -> tuple[int, int, bool]:
    """The lowest and the highest device, and whether they are numbered in a row.

    >>> extremes(np.array([7, 8, 9], dtype=np.uint64)), extremes(np.array([7, 9, 8], dtype=np.uint64))
    ((7, 9, True), (7, 9, False))
    """
    if len(devices) < MANY:
        return few_rows.extremes(devices)
    low, high, in_a_row = counter_loops().extremes(frozen(devices))
    return low, high, in_a_row


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
    if rows < MANY:
        some = slice(first, first + rows)
        own = None if exempt is None else (cells[some], there[some])
        few = few_rows.look_up(slots, filled, words, starts, own, symbols[some])
        left[found : found + len(few)] = few + first * count
        return found + len(few)
    if starts.within:
        base = starts.first - (starts.first >> 63 << 64)  # as a signed number, which the loops take for the same
        spread = frozen(starts.devices), base, starts.apart, starts.within
        found = loops().look_up_from(*spread, words, slots, filled, first, symbols, left, found)
        if exempt is not None:
            loops().look_up_again(frozen(cells), frozen(there), *spread, words, slots, first, symbols)
        return found
    if exempt is None:
        return int(loops().look_up(words, slots, filled, first * count, symbols.reshape(-1), left, found))
    if count == 1 and len(slots) == 2:
        return int(loops().look_up_either(words, frozen(there), slots, filled, first, symbols, left, found))
    own = frozen(cells), frozen(there)
    return int(loops().look_up_bits(*own, words, slots, filled, first, symbols, left, found))


def resolve(cuts: Words, left: Places, words: Words, exempt: Exempt | None, symbols: Column) -> None:
    """Replace some symbols, named by their places among those of all rows, by those that further words say.

    >>> symbols = np.zeros((2, 2), dtype=np.uint8)
    >>> resolve(np.array([[10, 20]], dtype=np.uint64), np.array([1]), np.array([15], dtype=np.uint64), None, symbols)
    >>> symbols.tolist()
    [[0, 1], [0, 0]]
    """
    if len(symbols) < MANY:
        few_rows.resolve(cuts, left, words, exempt, symbols)
        return
    cells, there = exempt or NO_EXEMPT
    loops().resolve(cuts, left, words, frozen(cells), frozen(there), symbols)


def clear(column: Column, spare: int) -> None:
    """Clear the spare bits of each row's last symbol.

    >>> column = np.array([[255, 255]], dtype=np.uint8)
    >>> clear(column, 0xF0)
    >>> column.tolist()
    [[255, 15]]
    """
    if len(column) < MANY:
        few_rows.clear(column, spare)
        return
    loops().clear(column, spare)


def shift(cells: Whole, shifts: Column, k: int) -> Column:
    """Symbols of 0..k-1, each shifted by 0..k-1 places, modulo k. The shifts may be overwritten.

    >>> shift(np.array([1, 2]), np.array([0, 1], dtype=np.uint8), 3).tolist()
    [1, 0]
    """
    if len(cells) < MANY:
        return few_rows.shift(cells, shifts, k)
    loops().shift(frozen(cells), shifts, k)
    return shifts


def invert(cuts: Words, rows: Whole, words: Words, many: bool = False) -> Column:
    """The symbol of each word: how many cuts of its row it is not below.

    >>> cuts = np.array([[10, 20], [5, 6]], dtype=np.uint64)
    >>> invert(cuts, np.array([0, 1]), np.array([10, 4], dtype=np.uint64)).tolist()
    [1, 0]
    """
    if not many:
        return few_rows.invert(cuts, rows, words)
    symbols = np.empty(len(words), dtype=smallest_unsigned(cuts.shape[1] + 1))
    loops().invert(cuts, rows, words, symbols)
    return symbols


def _frozen_tweaks(tweaks: Whole) -> Whole:
    """One tweak for all rows as it is: it has no column."""
    return tweaks if tweaks.strides == (0,) else frozen(tweaks)
