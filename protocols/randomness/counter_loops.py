"""The counters that the keystream encrypts, for many rows: compiled loops, as in `drawing_loops`.

A row's first block is outside the loop over its others: often there is no other, and then a loop over all would take
twice as long.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Whole, Words
from protocols.arrays.compiling import compiled

ZERO, ONE, TWO, THREE, SEVEN, HALF = (np.uint64(number) for number in (0, 1, 2, 3, 7, 32))
Index = int | np.uint64


@compiled
def fill_counters(devices: Words, tweaks: Whole, first: int, counters: Words) -> None:
    """counters[row, i] = (device, tweak | (first + i) << 32): what the keystream encrypts."""
    rows, count, _ = counters.shape
    for row in range(rows):
        device, tail = devices[row], np.uint64(np.uint32(tweaks[row])) | np.uint64(first) << HALF
        counters[row, 0, 0], counters[row, 0, 1] = device, tail
        for i in range(1, count):
            tail += ONE << HALF
            counters[row, i, 0], counters[row, i, 1] = device, tail


@compiled
def fill_streams(group: Index, tail: Index, counters: Words) -> None:
    """counters[row, i] = (group + row, tail + (i << 32))"""
    rows, count, _ = counters.shape
    for row in range(rows):
        for i in range(count):
            counters[row, i, 0] = np.uint64(group) + np.uint64(row)
            counters[row, i, 1] = np.uint64(tail) + (np.uint64(i) << HALF)


@compiled
def fill_shared(devices: Words, tweaks: Whole, first: int, count: int, counters: Words) -> None:
    """counters[row, i] = (device // 8, tweak | (first + i) << 32), i from the block with the device's first word on."""
    rows, blocks, _ = counters.shape
    if blocks == 1:
        flat = counters.reshape(-1)
        for row in range(rows):
            before = (devices[row] & SEVEN) * np.uint64(count) >> THREE
            flat[TWO * np.uint64(row)] = devices[row] >> THREE
            flat[TWO * np.uint64(row) + ONE] = np.uint64(np.uint32(tweaks[row])) | (np.uint64(first) + before) << HALF
        return
    for row in range(rows):
        before, group = (devices[row] & SEVEN) * np.uint64(count), devices[row] >> THREE
        tail = np.uint64(np.uint32(tweaks[row])) | (np.uint64(first) + (before >> THREE)) << HALF
        counters[row, 0, 0], counters[row, 0, 1] = group, tail
        for i in range(1, blocks):
            tail += ONE << HALF
            counters[row, i, 0], counters[row, i, 1] = group, tail


@compiled
def fill_further(devices: Words, tweaks: Whole, first: int, left: Whole, count: int, counters: Words) -> None:
    """counters[i] = (device, tweak | (first + place) << 32), of the row and the place in it that left[i] names."""
    for i in range(len(left)):
        row, place = np.uint64(left[i]) // np.uint64(count), np.uint64(left[i]) % np.uint64(count)
        counters[i, 0] = devices[row]
        counters[i, 1] = np.uint64(np.uint32(tweaks[row])) | (np.uint64(first) + place) << HALF


@compiled
def extremes(devices: Words) -> tuple[int, int, bool]:
    """The lowest and the highest device, and whether they are numbered in a row."""
    first, off = devices[0], ZERO
    for row in range(len(devices)):
        off |= (devices[row] - first) ^ np.uint64(row)
    if off == ZERO:
        return first, devices[-1], True
    low, high = first, first
    for row in range(len(devices)):
        low, high = min(low, devices[row]), max(high, devices[row])
    return low, high, False
