"""The loops that take most of the time of drawing: which blocks to encrypt, and what their bits mean.

Fewer than `MANY` rows are drawn in numpy (`few_rows`): a single device needs no compiler. More are drawn by compiled
loops (`drawing_loops`), which are imported at the first use.
"""

from __future__ import annotations

from math import prod

import numpy as np

from protocols.arrays.aliases import Column, Places, ShortWords, Whole, Words
from protocols.arrays.columns import smallest_unsigned
from protocols.arrays.counting import frozen
from protocols.randomness import few_rows
from protocols.randomness.few_rows import blocks_alone

MANY = 2048
Exempt = tuple[Whole, Whole]  # for each row: a place, and its kind


def counter_blocks(devices: Words, tweaks: Whole, first: int, count: int) -> Words:
    """`count` counter blocks for each row, numbered from `first`: (device, tweak | number << 32).

    >>> counter_blocks(np.array([7], dtype=np.uint64), np.array([5], dtype=np.uint32), 1, 2).tolist()
    [[[7, 4294967301], [7, 8589934597]]]
    """
    if len(devices) * count < MANY:
        return few_rows.counter_blocks(devices, tweaks, first, count)
    from protocols.randomness.drawing_loops import fill_counters

    counters = np.empty((len(devices), count, 2), dtype="<u8")
    fill_counters(frozen(devices), tweaks, first, counters)
    return counters


def shared_blocks(
    devices: Words, tweaks: Whole, first: int, count: int, room: Words | None = None
) -> tuple[Words, Words]:
    """The counter blocks in which each row finds its words, and where in all of them its words begin.

    Eight neighbours have one stream of blocks, numbered from `first`, and each of them the next `count` words of it.
    `room` is memory for many counters.

    >>> counters, starts = shared_blocks(np.array([9, 15], dtype=np.uint64), np.array([5, 5], dtype=np.uint32), 0, 4)
    >>> (counters >> np.array([0, 32], dtype=np.uint64)).tolist(), starts.tolist()
    ([[[1, 0]], [[1, 3]]], [4, 12])
    """
    if len(devices) < MANY:
        return few_rows.shared_blocks(devices, tweaks, first, count)
    from protocols.randomness.drawing_loops import fill_shared

    size = (len(devices), blocks_alone(count), 2)
    counters = np.empty(size, dtype="<u8") if room is None else room[: prod(size)].reshape(size)
    starts = np.empty(len(devices), dtype=np.uint64)
    fill_shared(frozen(devices), tweaks, first, count, counters, starts)
    return counters, starts


def extremes(devices: Words) -> tuple[int, int, bool]:
    """The lowest and the highest device, and whether they are numbered in a row.

    >>> extremes(np.array([7, 8, 9], dtype=np.uint64)), extremes(np.array([7, 9, 8], dtype=np.uint64))
    ((7, 9, True), (7, 9, False))
    """
    if len(devices) < MANY:
        return few_rows.extremes(devices)
    from protocols.randomness import drawing_loops

    return drawing_loops.extremes(frozen(devices))


def look_up(
    slots: Column, filled: int, words: ShortWords, starts: Words | None, exempt: Exempt | None, symbols: Column
) -> Places:
    """symbols = slots[0, words], and where (flat) words are `filled` or more: those need further bits.

    Each row's words begin at its start; without starts, one row's words follow the other's. In the exempt place of each
    row, the word is looked up among the slots of the row's kind.

    >>> slots, words = np.array([[4, 4, 5], [8, 8, 9]], dtype=np.uint8), np.array([0, 2, 1, 1], dtype=np.uint16)
    >>> symbols = np.empty((2, 2), dtype=np.uint8)
    >>> look_up(slots, 2, words, None, None, symbols).tolist(), symbols.tolist()
    ([1], [[4, 5], [4, 4]])
    >>> look_up(slots, 2, words, None, (np.array([1, 0]), np.array([1, 0])), symbols).tolist(), symbols.tolist()
    ([1], [[4, 9], [4, 4]])
    """
    if len(symbols) < MANY:
        return few_rows.look_up(slots, filled, words, starts, exempt, symbols)
    from protocols.randomness import drawing_loops as loops

    left = np.empty(symbols.size, dtype=np.intp)
    if starts is not None:
        found = loops.look_up_from(starts, words, slots[0], filled, symbols, left)
    elif exempt is not None and symbols.shape[1] == 1:
        loops.look_up_kinds(words, frozen(exempt[1]), slots, symbols.reshape(-1))
        return left[: loops.find_beyond(words, filled, left)]
    else:
        loops.look_up(words, slots[0], symbols.reshape(-1))
        found = loops.find_beyond(words, filled, left)
    if exempt is not None:
        given = np.empty(0, dtype=np.uint64) if starts is None else starts
        loops.look_up_again(frozen(exempt[0]), frozen(exempt[1]), words, given, slots, symbols)
    return left[:found]


def shift(cells: Whole, shifts: Column, k: int) -> Column:
    """Symbols of 0..k-1, each shifted by 0..k-1 places, modulo k.

    >>> shift(np.array([1, 2]), np.array([0, 1], dtype=np.uint8), 3).tolist()
    [1, 0]
    """
    if len(cells) < MANY:
        return few_rows.shift(cells, shifts, k)
    from protocols.randomness import drawing_loops

    shifted = np.empty_like(shifts)
    drawing_loops.shift(frozen(cells), shifts, k, shifted)
    return shifted


def invert(cuts: Words, rows: Whole, words: Words, many: bool = False) -> Column:
    """The symbol of each word: how many cuts of its row it is not below.

    >>> cuts = np.array([[10, 20], [5, 6]], dtype=np.uint64)
    >>> invert(cuts, np.array([0, 1]), np.array([10, 4], dtype=np.uint64)).tolist()
    [1, 0]
    """
    if not many:
        return few_rows.invert(cuts, rows, words)
    from protocols.randomness import drawing_loops

    symbols = np.empty(len(words), dtype=smallest_unsigned(cuts.shape[1] + 1))
    drawing_loops.invert(cuts, rows, words, symbols)
    return symbols
