"""Counting symbols and bits by group, in loops that are compiled at their first call.

The loops are imported at the first use and not before, because importing numba takes longer than most commands do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from protocols.arrays.aliases import Bytes, Counts, Mask, Whole

MANY = 4096  # rows of one group: from here on it is quicker to add them in blocks


def count_symbols(symbols: Whole, groups: Whole, size: int, k: int) -> Counts:
    """counts[group, symbol] of a column of symbols; ValueError if one of either is out of range.

    >>> count_symbols(np.array([0, 2, 2]), np.array([0, 0, 1]), 2, 3).tolist()
    [[1, 0, 1], [0, 0, 1]]
    """
    from protocols.arrays.counting_loops import tally

    counts = np.zeros((size, k), dtype=np.int64)
    if len(symbols) != len(groups) or not tally(frozen(symbols), frozen(groups), counts):
        raise ValueError(f"not one symbol of 0..{k - 1} and one group of 0..{size - 1} for each row")
    return counts


def count_bits(packed: Bytes, groups: Whole, size: int, k: int) -> Counts:
    """counts[group, bit] of a column of packed bit vectors; ValueError if a group is out of range.

    >>> count_bits(np.array([[1], [3], [2]], dtype=np.uint8), np.array([0, 0, 1]), 2, 2).tolist()
    [[2, 1], [0, 1]]
    """
    from protocols.arrays.counting_loops import BLOCK, add_blocks, add_up, by_group

    counts = np.zeros((size, k), dtype=np.int64)
    rows = _sizes(groups, size, len(packed))
    in_order = rows.max() == len(packed)
    if in_order and len(packed) >= MANY:
        add_blocks(frozen(packed.reshape(-1)), packed.shape[1], counts[rows.argmax()])
        packed = packed[len(packed) // BLOCK * BLOCK :]
        rows = np.minimum(rows, len(packed))
    ends = np.cumsum(rows)
    order = np.empty(0, dtype=np.uint64) if in_order else by_group(frozen(groups), ends - rows)
    add_up(frozen(packed.reshape(-1)), packed.shape[1], order, ends, counts)
    return counts


def count_ones(packed: Bytes, k: int) -> Counts:
    """counts[c] of a column of vectors of k packed bits: how many have c bits set; ValueError if one has more than k.

    >>> count_ones(np.array([[1], [3], [2]], dtype=np.uint8), 2).tolist()
    [0, 2, 1]
    """
    from protocols.arrays.counting_loops import tally_ones

    counts = np.zeros(k + 1, dtype=np.int64)
    if not tally_ones(frozen(packed.reshape(-1)), packed.shape[1], counts):
        raise ValueError(f"a vector of {k} bits has more than {k} bits set")
    return counts


def _sizes(groups: Whole, size: int, rows: int) -> Counts:
    """How many rows each group has. Often all are in one (a survey without windows), which is quickly checked."""
    shown = groups[:1] if len(groups) == rows and (groups == groups[:1]).all() else groups
    counted = rows if shown is groups else len(shown)
    sizes = count_symbols(np.zeros(counted, dtype=np.uint8), shown, size, 1)[:, 0]
    return sizes if shown is groups else sizes * rows


def frozen(column: Whole | Mask) -> Any:
    """A read-only view, so that one compiled loop serves columns that may and may not be written to."""
    if column.flags.c_contiguous and not column.flags.writeable:
        return column
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view
