"""The loops that count answers, by numpy: what a process uses that asks for no compiled ones."""

import numpy as np

from protocols.arrays.aliases import Bytes, Column, Counts, Whole

MOST_BITS = 1 << 22
"""So many bits are unpacked at once, a byte each: more would leave the processor's cache."""


def tally(symbols: Column, groups: Whole, counts: Counts) -> bool:
    """Count the symbols of each group; False if one of either is out of range."""
    size, k = counts.shape
    if not (_within(symbols, k) and _within(groups, size)):
        return False
    np.add.at(counts, (groups.astype(np.intp), symbols.astype(np.intp)), 1)
    return True


def add_bits(packed: Bytes, groups: Whole, counts: Counts) -> bool:
    """Count the bits of each group's rows; False if a group is out of range. Spare bits are counted, too."""
    size, bits = counts.shape
    if not _within(groups, size):
        return False
    if not len(groups):
        return True
    order = np.argsort(groups, kind="stable")
    present, begins = np.unique(groups[order], return_index=True)
    step = max(1, MOST_BITS // bits)
    for group, rows in zip(present.tolist(), np.split(order, begins[1:]), strict=True):
        for start in range(0, len(rows), step):
            unpacked = np.unpackbits(packed[rows[start : start + step]], axis=1, bitorder="little")
            counts[group] += unpacked.sum(axis=0, dtype=np.int64)
    return True


def _within(numbers: Whole, count: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < count)
