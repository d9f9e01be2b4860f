"""The few loops in which the time goes: counting answers by group, and drawing noise.

Each is written twice: plainly in numpy (`..._plainly`, the definition) and as a compiled loop (what runs). The loops
are imported at the first use and not before, because importing numba takes longer than most commands do. Drawing for
fewer than `MANY` rows stays plain: a single device needs no compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Whole = NDArray[np.integer[Any]]
Words = NDArray[np.uint64]

MANY = 2048


def count_symbols(symbols: Whole, groups: Whole, size: int, k: int) -> Counts:
    """counts[group, symbol] of a column of symbols; ValueError if one of either is out of range.

    >>> count_symbols(np.array([0, 2, 2]), np.array([0, 0, 1]), 2, 3).tolist()
    [[1, 0, 1], [0, 0, 1]]
    """
    from protocols.loops import tally

    counts = np.zeros((size, k), dtype=np.int64)
    if len(symbols) != len(groups) or not tally(_frozen(symbols), _frozen(groups), counts):
        raise ValueError(f"not one symbol of 0..{k - 1} and one group of 0..{size - 1} for each row")
    return counts


def count_bits(packed: NDArray[np.uint8], groups: Whole, size: int, k: int) -> Counts:
    """counts[group, bit] of a column of packed bit vectors; ValueError if a group is out of range.

    >>> count_bits(np.array([[1], [3], [2]], dtype=np.uint8), np.array([0, 0, 1]), 2, 2).tolist()
    [[2, 1], [0, 1]]
    """
    from protocols.loops import add_up, by_group

    rows = _sizes(groups, size, len(packed))
    ends = np.cumsum(rows)
    in_order = rows.max() == len(packed)
    order = np.empty(0, dtype=np.uint64) if in_order else by_group(_frozen(groups), ends - rows)
    counts = np.zeros((size, k), dtype=np.int64)
    add_up(_frozen(packed.reshape(-1)), packed.shape[1], order, ends, counts)
    return counts


def count_symbols_plainly(symbols: Whole, groups: Whole, size: int, k: int) -> Counts:
    """What `count_symbols` counts, by definition."""
    cells = groups.astype(np.int64) * k + symbols
    return np.bincount(cells, minlength=size * k).reshape(size, k)


def count_bits_plainly(packed: NDArray[np.uint8], groups: Whole, size: int, k: int) -> Counts:
    """What `count_bits` counts, by definition."""
    counts = np.zeros((size, k), dtype=np.int64)
    for group in np.unique(groups):
        bits = np.unpackbits(packed[groups == group], axis=1, count=k, bitorder="little")
        counts[group] = bits.sum(axis=0, dtype=np.int64)
    return counts


def counter_blocks(devices: Words, tweaks: Whole, first: int, count: int) -> Words:
    """`count` counter blocks for each row, numbered from `first`: (device, tweak | number << 32).

    >>> counter_blocks(np.array([7], dtype=np.uint64), np.array([5], dtype=np.uint32), 1, 2).tolist()
    [[[7, 4294967301], [7, 8589934597]]]
    """
    if len(devices) < MANY:
        return counter_blocks_plainly(devices, tweaks, first, count)
    from protocols.loops import fill_counters

    counters = np.empty((len(devices), count, 2), dtype="<u8")
    fill_counters(_frozen(devices), tweaks, first, counters)
    return counters


def counter_blocks_plainly(devices: Words, tweaks: Whole, first: int, count: int) -> Words:
    """What `counter_blocks` is, by definition."""
    counters = np.empty((len(devices), count, 2), dtype="<u8")
    numbers = (np.arange(count, dtype=np.uint64) + np.uint64(first)) << np.uint64(32)
    counters[:, :, 0] = devices[:, None]
    counters[:, :, 1] = tweaks[:, None] | numbers[None, :]
    return counters


def shared_blocks(devices: Words, tweaks: Whole, number: int, share: int) -> tuple[Words, NDArray[np.intp]]:
    """Counter blocks of which `share` neighbouring devices have one in common, and each row's place in them.

    Rows that follow each other and have a block in common get it once; place = block * share + device % share.

    >>> devices, tweaks = np.array([7, 8, 9], dtype=np.uint64), np.array([5, 5, 5], dtype=np.uint32)
    >>> counters, places = shared_blocks(devices, tweaks, 0, 8)
    >>> counters.tolist(), places.tolist()
    ([[0, 5], [1, 5]], [7, 8, 9])
    """
    if len(devices) < MANY:
        return shared_blocks_plainly(devices, tweaks, number, share)
    from protocols.loops import fill_shared

    counters, places = np.empty((len(devices), 2), dtype="<u8"), np.empty(len(devices), dtype=np.intp)
    count = fill_shared(_frozen(devices), tweaks, number, share.bit_length() - 1, counters, places)
    return counters[:count], places


def shared_blocks_plainly(devices: Words, tweaks: Whole, number: int, share: int) -> tuple[Words, NDArray[np.intp]]:
    """What `shared_blocks` finds, by definition."""
    blocks, within = np.divmod(devices, np.uint64(share))
    new = np.ones(len(devices), dtype=bool)
    new[1:] = (blocks[1:] != blocks[:-1]) | (tweaks[1:] != tweaks[:-1])
    counters = np.stack([blocks[new], tweaks[new] | np.uint64(number << 32)], axis=1).astype("<u8", copy=False)
    return counters, (np.cumsum(new) - 1) * share + within.astype(np.intp)


def look_up(slots: Whole, filled: int, words: NDArray[np.uint16]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """slots[words], and where (flat) words are `filled` or more: those are not settled yet.

    >>> symbols, left = look_up(np.array([4, 4, 5]), 2, np.array([[0, 2], [1, 1]], dtype=np.uint16))
    >>> symbols.tolist(), left.tolist()
    ([[4, 5], [4, 4]], [1])
    """
    if len(words) < MANY:
        return look_up_plainly(slots, filled, words)
    from protocols.loops import settle

    symbols, left = np.empty(words.shape, dtype=slots.dtype), np.empty(words.size, dtype=np.intp)
    return symbols, left[: settle(words, slots, filled, symbols, left)]


def look_up_plainly(slots: Whole, filled: int, words: NDArray[np.uint16]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """What `look_up` finds, by definition."""
    return slots.take(words), np.flatnonzero(words >= filled)


def _sizes(groups: Whole, size: int, rows: int) -> Counts:
    """How many rows each group has. Often all are in one, as in a survey without windows, which is seen at a glance."""
    shown = groups[:1] if len(groups) == rows and (groups == groups[:1]).all() else groups
    counted = rows if shown is groups else len(shown)
    sizes = count_symbols(np.zeros(counted, dtype=np.uint8), shown, size, 1)[:, 0]
    return sizes if shown is groups else sizes * rows


def _frozen(column: Whole) -> Any:
    """A read-only view, so that one compiled loop serves columns that may and may not be written to."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view
