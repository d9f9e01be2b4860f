"""Counting kernels: how many answers of each group support each value.

Each is written twice: plainly in numpy (`..._plainly`, the definition) and as a compiled loop (what runs). The loops
are imported at the first count and not before, because importing numba takes longer than most commands do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Whole = NDArray[np.integer[Any]]


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

    rows = count_symbols(np.broadcast_to(np.uint8(0), len(packed)), groups, size, 1)[:, 0]
    ends = np.cumsum(rows)
    sorted_already = rows.max() == len(groups)
    order = np.arange(len(groups), dtype=np.uint64) if sorted_already else by_group(_frozen(groups), ends - rows)
    words = np.zeros(packed.size // 8 + 2, dtype="<u8")
    words.view(np.uint8)[: packed.size] = packed.reshape(-1)
    counts = np.zeros((size, k), dtype=np.int64)
    add_up(words, packed.shape[1], order, ends, counts)
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


def _frozen(column: Whole) -> Whole:
    """A read-only view, so that one compiled loop serves columns that may and may not be written to."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view
