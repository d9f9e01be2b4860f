"""Columns of memos or answers, one symbol a row, or one packed bit vector a row; and counting them by group.

Both have a fixed number of bytes per row, in the memo store and on the wire, and both can check rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from protocols.arrays.aliases import Bytes, Column, Counts, Mask, Whole
from protocols.arrays.loops import counting_loops


@dataclass(frozen=True)
class Symbols:
    """Unsigned integers 0 .. count-1 in the smallest type that holds them.

    >>> Symbols(300).dtype, Symbols(300).bytes
    (dtype('uint16'), 2)
    """

    count: int

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        return smallest_unsigned(self.count)

    @property
    def bits(self) -> int:
        """How many bits distinguish all symbols."""
        return (self.count - 1).bit_length()

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize

    def good(self, column: Column) -> Mask:
        return np.asarray(column < self.count)

    def to_bytes(self, column: Column) -> Bytes:
        little = np.ascontiguousarray(column, dtype=self.dtype.newbyteorder("<"))
        return little.view(np.uint8).reshape(len(column), self.bytes)

    def from_bytes(self, raw: Bytes) -> Column:
        little = np.ascontiguousarray(raw).reshape(-1).view(self.dtype.newbyteorder("<"))
        return little.astype(self.dtype, copy=False)


@dataclass(frozen=True)
class PackedBits:
    """Vectors of `count` bits: bit i is bit i % 8 of byte i // 8; the spare bits of the last byte are 0.

    >>> PackedBits(10).pack(np.eye(10, dtype=np.uint8)[[9]]).tolist()
    [[0, 2]]
    """

    count: int
    dtype = np.dtype(np.uint8)

    @property
    def bits(self) -> int:
        return self.count

    @property
    def bytes(self) -> int:
        return -(-self.count // 8)

    @property
    def spare(self) -> int:
        """The bits of the last byte that must be 0."""
        return 0xFF & ~((1 << ((self.count - 1) % 8 + 1)) - 1)

    def good(self, column: Column) -> Mask:
        return np.asarray((column[:, -1] & self.spare) == 0)

    def to_bytes(self, column: Column) -> Bytes:
        return np.ascontiguousarray(column, dtype=np.uint8)

    def from_bytes(self, raw: Bytes) -> Column:
        return np.ascontiguousarray(raw).reshape(-1, self.bytes)

    def pack(self, bits: Whole | Mask) -> Column:
        return np.packbits(bits.astype(np.uint8, copy=False), axis=1, bitorder="little")

    def unpack(self, column: Column) -> Bytes:
        return np.unpackbits(column.astype(np.uint8, copy=False), axis=1, count=self.count, bitorder="little")


Layout = Symbols | PackedBits


def smallest_unsigned(count: int) -> np.dtype[np.unsignedinteger[Any]]:
    """The smallest unsigned type that holds 0 .. count-1."""
    return np.min_scalar_type(count - 1)


def count_symbols(symbols: Whole, groups: Whole, size: int, k: int) -> Counts:
    """counts[group, symbol] of a column of symbols; ValueError if one of either is out of range.

    >>> count_symbols(np.array([0, 2, 2]), np.array([0, 0, 1]), 2, 3).tolist()
    [[1, 0, 1], [0, 0, 1]]
    """
    counts = np.zeros((size, k), dtype=np.int64)
    if len(symbols) != len(groups) or not counting_loops().tally(symbols, groups, counts):
        raise ValueError(f"not one symbol of 0..{k - 1} and one group of 0..{size - 1} for each row")
    return counts


def count_bits(packed: Bytes, groups: Whole, size: int, k: int) -> Counts:
    """counts[group, bit] of a column of packed bit vectors; ValueError if a group is out of range.

    >>> count_bits(np.array([[1], [3], [2]], dtype=np.uint8), np.array([0, 0, 1]), 2, 2).tolist()
    [[2, 1], [0, 1]]
    """
    counts = np.zeros((size, 8 * packed.shape[1]), dtype=np.int64)
    if len(packed) != len(groups) or not counting_loops().add_bits(packed, groups, counts):
        raise ValueError(f"not one group of 0..{size - 1} for each row")
    return counts[:, :k]


def count_ones(packed: Bytes, k: int) -> Counts:
    """counts[c] of a column of vectors of k packed bits: how many have c bits set; ValueError if one has more than k.

    >>> count_ones(np.array([[1], [3], [2]], dtype=np.uint8), 2).tolist()
    [0, 2, 1]
    """
    # byte by byte, of all rows: a sum within each of many short rows takes three times as long
    bits = np.bitwise_count(np.ascontiguousarray(packed.T)).sum(axis=0, dtype=np.uint32)
    counts = np.bincount(bits, minlength=k + 1)
    if len(counts) > k + 1:
        raise ValueError(f"a vector of {k} bits has more than {k} bits set")
    return counts
