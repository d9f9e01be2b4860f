"""Counting kernels: how many answers of each group support each value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Whole = NDArray[np.integer[Any]]


def count_symbols(symbols: Whole, groups: Whole, size: int, k: int) -> Counts:
    """counts[group, symbol] of a column of symbols.

    >>> count_symbols(np.array([0, 2, 2]), np.array([0, 0, 1]), 2, 3).tolist()
    [[1, 0, 1], [0, 0, 1]]
    """
    cells = groups.astype(np.int64) * k + symbols
    return np.bincount(cells, minlength=size * k).reshape(size, k)


def count_bits(packed: NDArray[Any], groups: Whole, size: int, k: int) -> Counts:
    """counts[group, bit] of a column of packed bit vectors.

    >>> count_bits(np.array([[1], [3], [2]], dtype=np.uint8), np.array([0, 0, 1]), 2, 2).tolist()
    [[2, 1], [0, 1]]
    """
    counts = np.zeros((size, k), dtype=np.int64)
    for group in np.unique(groups):
        bits = np.unpackbits(packed[groups == group], axis=1, count=k, bitorder="little")
        counts[group] = bits.sum(axis=0, dtype=np.int64)
    return counts
