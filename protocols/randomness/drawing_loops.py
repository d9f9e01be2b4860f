"""What `drawing` does for many rows: loops compiled by numba at their first call and kept for the next process.

Indices are unsigned because numba then leaves out the test for negative ones. A row's first block and first word are
outside the loop over its others: often there is no other, and then a loop over all would take twice as long.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Whole, Words
from protocols.arrays.compiling import compiled

ZERO, ONE, THREE, SEVEN, HALF = (np.uint64(number) for number in (0, 1, 3, 7, 32))


@compiled
def fill_counters(devices: Words, tweaks: Whole, first: int, counters: Words) -> None:
    """counters[row, i] = (device, tweak | (first + i) << 32): what the keystream encrypts."""
    rows, count, _ = counters.shape
    for row in range(rows):
        device, tail = devices[row], np.uint64(tweaks[row]) | np.uint64(first) << HALF
        counters[row, 0, 0], counters[row, 0, 1] = device, tail
        for i in range(1, count):
            tail += ONE << HALF
            counters[row, i, 0], counters[row, i, 1] = device, tail


@compiled
def fill_shared(devices: Words, tweaks: Whole, first: int, count: int, counters: Words, starts: Words) -> None:
    """counters[row, i] = (device // 8, tweak | (first + i) << 32), i from the block with the device's first word on."""
    rows, blocks, _ = counters.shape
    for row in range(rows):
        before, group = (devices[row] & SEVEN) * np.uint64(count), devices[row] >> THREE
        tail = np.uint64(tweaks[row]) | (np.uint64(first) + (before >> THREE)) << HALF
        counters[row, 0, 0], counters[row, 0, 1] = group, tail
        for i in range(1, blocks):
            tail += ONE << HALF
            counters[row, i, 0], counters[row, i, 1] = group, tail
        starts[row] = (np.uint64(blocks) * np.uint64(row) << THREE) + (before & SEVEN)


@compiled
def extremes(devices: Words) -> tuple[int, int, bool]:
    """The lowest and the highest device, and whether they are numbered in a row."""
    low, high, off = devices[0], devices[0], ZERO
    for row in range(len(devices)):
        low, high = min(low, devices[row]), max(high, devices[row])
        off |= (devices[row] - devices[0]) ^ np.uint64(row)
    return low, high, off == ZERO


@compiled
def look_up(words: Whole, slots: Whole, symbols: Whole) -> None:
    """symbols = slots[words]"""
    for i in range(len(words)):
        symbols[i] = slots[words[i]]


@compiled
def look_up_kinds(words: Whole, kinds: Whole, slots: Whole, symbols: Whole) -> None:
    """symbols = slots[kinds, words]"""
    for i in range(len(words)):
        symbols[i] = slots[np.uint64(kinds[i]), np.uint64(words[i])]


@compiled
def greatest(words: Whole) -> np.uint16:
    top = np.uint16(0)
    for i in range(len(words)):
        top = max(top, words[i])
    return top


@compiled
def find_beyond(words: Whole, filled: int, left: Whole) -> int:
    """Write the places of words that are `filled` or more to `left`, and count them.

    There are few of them, so only parts whose greatest word is one are searched.
    """
    found = 0
    for start in range(0, len(words), 256):
        part = words[start : start + 256]
        if greatest(part) >= filled:
            for i in range(len(part)):
                if part[i] >= filled:
                    left[found] = start + i
                    found += 1
    return found


@compiled
def look_up_from(starts: Words, words: Whole, slots: Whole, filled: int, symbols: Whole, left: Whole) -> int:
    """symbols = slots[words], where each row's words begin at a place of their own.

    Places of words that are `filled` or more are written to `left` and counted.
    """
    rows, count = symbols.shape
    found = 0
    for row in range(rows):
        word = words[starts[row]]
        symbols[row, 0] = slots[word]
        if word >= filled:
            left[found] = row * count
            found += 1
        for i in range(1, count):
            word = words[starts[row] + np.uint64(i)]
            symbols[row, i] = slots[word]
            if word >= filled:
                left[found] = row * count + i
                found += 1
    return found


@compiled
def look_up_again(places: Whole, kinds: Whole, words: Whole, starts: Words, slots: Whole, symbols: Whole) -> None:
    """symbols[row, place] = slots[kind, word] in one place of each row; a branch on the kind would be guessed wrong."""
    rows, count = symbols.shape
    for row in range(rows):
        place, kind = np.uint64(places[row]), np.uint64(kinds[row])
        start = starts[row] if len(starts) else np.uint64(row) * np.uint64(count)
        symbols[row, place] = slots[kind, words[start + place]]


@compiled
def shift(cells: Whole, shifts: Whole, k: int, shifted: Whole) -> None:
    """shifted = cells + shifts, less k where that is k or more."""
    for row in range(len(cells)):
        total = np.int64(cells[row]) + np.int64(shifts[row])
        shifted[row] = total - k if total >= k else total


@compiled
def invert(cuts: Words, rows: Whole, words: Words, symbols: Whole) -> None:
    """symbols = how many cuts of its row each word is not below."""
    for i in range(len(words)):
        row, low, high = cuts[rows[i]], 0, cuts.shape[1]
        while low < high:
            middle = (low + high) >> 1
            if row[middle] <= words[i]:
                low = middle + 1
            else:
                high = middle
        symbols[i] = low
