"""The few loops in which the time of drawing goes: which blocks to encrypt, and what their bits mean.

Written twice, as in `kernels`: plainly in numpy (`..._plainly`, the definition), which serves fewer than `MANY` rows (a
single device needs no compiler), and as a compiled loop for more.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from protocols.arrays.aliases import Column, Places, ShortWords, Whole, Words
from protocols.arrays.columns import smallest_unsigned
from protocols.arrays.counting import frozen

MANY = 2048


def counter_blocks(devices: Words, tweaks: Whole, first: int, count: int) -> Words:
    """`count` counter blocks for each row, numbered from `first`: (device, tweak | number << 32).

    >>> counter_blocks(np.array([7], dtype=np.uint64), np.array([5], dtype=np.uint32), 1, 2).tolist()
    [[[7, 4294967301], [7, 8589934597]]]
    """
    if len(devices) * count < MANY:
        return counter_blocks_plainly(devices, tweaks, first, count)
    from protocols.randomness.drawing_loops import fill_counters

    counters = np.empty((len(devices), count, 2), dtype="<u8")
    fill_counters(frozen(devices), tweaks, first, counters)
    return counters


def counter_blocks_plainly(devices: Words, tweaks: Whole, first: int, count: int) -> Words:
    """What `counter_blocks` is, by definition."""
    counters = np.empty((len(devices), count, 2), dtype="<u8")
    numbers = (np.arange(count, dtype=np.uint64) + np.uint64(first)) << np.uint64(32)
    counters[:, :, 0] = devices[:, None]
    counters[:, :, 1] = tweaks[:, None] | numbers[None, :]
    return counters


def shared_blocks(devices: Words, tweaks: Whole, first: int, count: int) -> tuple[Words, Words]:
    """The counter blocks in which each row finds its words, and where in all of them its words begin.

    Eight neighbours have one stream of blocks, numbered from `first`, and each of them the next `count` words of it.

    >>> counters, starts = shared_blocks(np.array([9, 15], dtype=np.uint64), np.array([5, 5], dtype=np.uint32), 0, 4)
    >>> (counters >> np.array([0, 32], dtype=np.uint64)).tolist(), starts.tolist()
    ([[[1, 0]], [[1, 3]]], [4, 12])
    """
    if len(devices) < MANY:
        return shared_blocks_plainly(devices, tweaks, first, count)
    from protocols.randomness.drawing_loops import fill_shared

    counters = np.empty((len(devices), blocks_alone(count), 2), dtype="<u8")
    starts = np.empty(len(devices), dtype=np.uint64)
    fill_shared(frozen(devices), tweaks, first, count, counters, starts)
    return counters, starts


def shared_blocks_plainly(devices: Words, tweaks: Whole, first: int, count: int) -> tuple[Words, Words]:
    """What `shared_blocks` finds, by definition."""
    blocks = blocks_alone(count)
    before = (devices % np.uint64(8)).astype(np.int64) * count
    counters = counter_blocks_plainly(devices // np.uint64(8), tweaks, first, blocks)
    counters[:, :, 1] += (before[:, None] // 8).astype(np.uint64) << np.uint64(32)
    return counters, (8 * blocks * np.arange(len(devices)) + before % 8).astype(np.uint64)


def blocks_alone(count: int) -> int:
    """How many blocks hold `count` words in a row, whichever of eight neighbours they belong to.

    >>> blocks_alone(1), blocks_alone(4), blocks_alone(13)
    (1, 1, 3)
    """
    return -(-(8 - gcd(8, count) + count) // 8)


def extremes(devices: Words) -> tuple[int, int, bool]:
    """The lowest and the highest device, and whether they are numbered in a row.

    >>> extremes(np.array([7, 8, 9], dtype=np.uint64)), extremes(np.array([7, 9, 8], dtype=np.uint64))
    ((7, 9, True), (7, 9, False))
    """
    if len(devices) < MANY:
        return extremes_plainly(devices)
    from protocols.randomness import drawing_loops as noise_loops

    return noise_loops.extremes(frozen(devices))


def extremes_plainly(devices: Words) -> tuple[int, int, bool]:
    """What `extremes` finds, by definition."""
    in_a_row = np.array_equal(devices - devices[0], np.arange(len(devices), dtype=np.uint64))
    return int(devices.min()), int(devices.max()), in_a_row


def look_up(slots: Whole, filled: int, words: ShortWords, starts: Words | None, symbols: Column) -> Places:
    """symbols = slots[words], and where (flat) words are `filled` or more: those are not settled yet.

    Each row's words begin at its start; without starts, one row's words follow the other's.

    >>> symbols = np.empty((2, 2), dtype=np.uint8)
    >>> look_up(np.array([4, 4, 5]), 2, np.array([0, 2, 1, 1], dtype=np.uint16), None, symbols).tolist()
    [1]
    >>> symbols.tolist()
    [[4, 5], [4, 4]]
    """
    if len(symbols) < MANY:
        return look_up_plainly(slots, filled, words, starts, symbols)
    from protocols.randomness.drawing_loops import settle, settle_from

    left = np.empty(symbols.size, dtype=np.intp)
    if starts is None:
        return left[: settle(words, slots, filled, symbols.reshape(-1), left)]
    return left[: settle_from(starts, words, slots, filled, symbols, left)]


def look_up_plainly(slots: Whole, filled: int, words: ShortWords, starts: Words | None, symbols: Column) -> Places:
    """What `look_up` finds, by definition."""
    if starts is not None:
        words = words[starts[:, None] + np.arange(symbols.shape[1], dtype=np.uint64)]
    symbols[:] = slots.take(words).reshape(symbols.shape)
    return np.flatnonzero(words >= filled)


def look_up_again(
    places: Whole, kinds: Whole, slots: Column, words: ShortWords, starts: Words | None, symbols: Column
) -> None:
    """In one place of each row, look the word up again, in the table that its kind says.

    >>> symbols, slots = np.array([[4, 5], [4, 4]], dtype=np.uint8), np.array([[4, 4, 5], [8, 8, 9]], dtype=np.uint8)
    >>> look_up_again(np.array([1, 0]), np.array([1, 0]), slots, np.array([0, 2, 1, 1], dtype=np.uint16), None, symbols)
    >>> symbols.tolist()
    [[4, 9], [4, 4]]
    """
    if len(symbols) < MANY:
        return look_up_again_plainly(places, kinds, slots, words, starts, symbols)
    from protocols.randomness import drawing_loops as noise_loops

    given = np.empty(0, dtype=np.uint64) if starts is None else starts
    return noise_loops.look_up_again(frozen(places), frozen(kinds), words, given, slots, symbols)


def look_up_again_plainly(
    places: Whole, kinds: Whole, slots: Column, words: ShortWords, starts: Words | None, symbols: Column
) -> None:
    """What `look_up_again` does, by definition."""
    rows, count = symbols.shape
    first = np.arange(rows) * count if starts is None else starts.astype(np.int64)
    symbols[np.arange(rows), places] = slots[kinds, words[first + places]]


def shift(cells: Whole, shifts: Column, k: int) -> Column:
    """Symbols of 0..k-1, each shifted by 0..k-1 places, beginning anew at k.

    >>> shift(np.array([1, 2]), np.array([0, 1], dtype=np.uint8), 3).tolist()
    [1, 0]
    """
    if len(cells) < MANY:
        return shift_plainly(cells, shifts, k)
    from protocols.randomness import drawing_loops as noise_loops

    shifted = np.empty_like(shifts)
    noise_loops.shift(frozen(cells), shifts, k, shifted)
    return shifted


def shift_plainly(cells: Whole, shifts: Column, k: int) -> Column:
    """What `shift` gives, by definition."""
    return np.asarray((cells.astype(np.int64) + shifts) % k, dtype=shifts.dtype)


def invert(cuts: Words, rows: Whole, words: Words, many: bool = False) -> Column:
    """The symbol each word stands for: how many cuts of its row it is not below.

    >>> cuts = np.array([[10, 20], [5, 6]], dtype=np.uint64)
    >>> invert(cuts, np.array([0, 1]), np.array([10, 4], dtype=np.uint64)).tolist()
    [1, 0]
    """
    if not many:
        return invert_plainly(cuts, rows, words)
    from protocols.randomness import drawing_loops as noise_loops

    symbols = np.empty(len(words), dtype=smallest_unsigned(cuts.shape[1] + 1))
    noise_loops.invert(cuts, rows, words, symbols)
    return symbols


def invert_plainly(cuts: Words, rows: Whole, words: Words) -> Column:
    """What `invert` finds, by definition."""
    below = [np.searchsorted(cuts[row], word, side="right") for row, word in zip(rows, words, strict=True)]
    return np.array(below, dtype=smallest_unsigned(cuts.shape[1] + 1))
