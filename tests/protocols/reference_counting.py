"""What the compiled counting loops must count, in a few lines of numpy each."""

from __future__ import annotations

import numpy as np

from protocols.arrays import Bytes, Counts, Whole


def count_symbols(symbols: Whole, groups: Whole, size: int, k: int) -> Counts:
    """counts[group, symbol] of a column of symbols."""
    cells = groups.astype(np.int64) * k + symbols
    return np.bincount(cells, minlength=size * k).reshape(size, k)


def count_bits(packed: Bytes, groups: Whole, size: int, k: int) -> Counts:
    """counts[group, bit] of a column of packed bit vectors."""
    counts = np.zeros((size, k), dtype=np.int64)
    for group in np.unique(groups):
        bits = np.unpackbits(packed[groups == group], axis=1, count=k, bitorder="little")
        counts[group] = bits.sum(axis=0, dtype=np.int64)
    return counts


def count_ones(packed: Bytes, k: int) -> Counts:
    """counts[c]: how many of the vectors have c bits set."""
    ones = np.unpackbits(packed, axis=1, count=k, bitorder="little").sum(axis=1, dtype=np.int64)
    return np.bincount(ones, minlength=k + 1)
