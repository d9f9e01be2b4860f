"""What `drawing` does for few rows, in numpy. It defines what the compiled loops for many rows must do."""

from __future__ import annotations

from math import gcd

import numpy as np

from protocols.arrays.aliases import Column, Places, ShortWords, Whole, Words
from protocols.arrays.columns import smallest_unsigned


def blocks_alone(count: int) -> int:
    """How many blocks hold `count` words in a row, whichever of eight neighbours they belong to.

    >>> blocks_alone(1), blocks_alone(4), blocks_alone(13)
    (1, 1, 3)
    """
    return -(-(8 - gcd(8, count) + count) // 8)


def counter_blocks(devices: Words, tweaks: Whole, first: int, count: int) -> Words:
    """(device, tweak | number << 32) for each row and number."""
    counters = np.empty((len(devices), count, 2), dtype="<u8")
    numbers = (np.arange(count, dtype=np.uint64) + np.uint64(first)) << np.uint64(32)
    counters[:, :, 0] = devices[:, None]
    counters[:, :, 1] = tweaks[:, None] | numbers[None, :]
    return counters


def shared_blocks(devices: Words, tweaks: Whole, first: int, count: int) -> tuple[Words, Words]:
    """The counter blocks of each row's words, and where its words begin: eight neighbours share a stream."""
    blocks = blocks_alone(count)
    before = (devices % np.uint64(8)).astype(np.int64) * count
    counters = counter_blocks(devices // np.uint64(8), tweaks, first, blocks)
    counters[:, :, 1] += (before[:, None] // 8).astype(np.uint64) << np.uint64(32)
    return counters, (8 * blocks * np.arange(len(devices)) + before % 8).astype(np.uint64)


def extremes(devices: Words) -> tuple[int, int, bool]:
    """The lowest and the highest device, and whether they are numbered in a row."""
    in_a_row = np.array_equal(devices - devices[0], np.arange(len(devices), dtype=np.uint64))
    return int(devices.min()), int(devices.max()), in_a_row


def look_up(
    slots: Column,
    filled: int,
    words: ShortWords,
    starts: Words | None,
    exempt: tuple[Whole, Whole] | None,
    symbols: Column,
) -> Places:
    """symbols = slots[0, words], in one place of each row slots[kind, word]; where words are `filled` or more."""
    rows, count = symbols.shape
    if starts is not None:
        words = words[starts[:, None] + np.arange(count, dtype=np.uint64)]
    words = words.reshape(rows, count)
    symbols[:] = slots[0].take(words)
    if exempt is not None:
        places, kinds = exempt
        symbols[np.arange(rows), places] = slots[kinds, words[np.arange(rows), places]]
    return np.flatnonzero(words >= filled)


def shift(cells: Whole, shifts: Column, k: int) -> Column:
    """cells + shifts, modulo k."""
    return np.asarray((cells.astype(np.int64) + shifts) % k, dtype=shifts.dtype)


def invert(cuts: Words, rows: Whole, words: Words) -> Column:
    """How many cuts of its row each word is not below."""
    below = [np.searchsorted(cuts[row], word, side="right") for row, word in zip(rows, words, strict=True)]
    return np.array(below, dtype=smallest_unsigned(cuts.shape[1] + 1))
