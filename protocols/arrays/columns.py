"""How a column of memos or answers looks: one symbol a row, or one packed bit vector a row.

Both have a fixed number of bytes per row, in the memo store and on the wire, and both can check rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from protocols.arrays.aliases import Bytes, Column, Mask, Whole


@dataclass(frozen=True)
class Symbols:
    """Unsigned integers 0 .. count-1 in the smallest type that holds them.

    >>> Symbols(300).dtype, Symbols(300).bytes
    (dtype('uint16'), 2)
    """

    count: int

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        return np.dtype(smallest_unsigned(self.count))

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

    @property
    def dtype(self) -> np.dtype[np.uint8]:
        return np.dtype(np.uint8)

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
        return np.packbits(bits.astype(np.uint8), axis=1, bitorder="little")

    def unpack(self, column: Column) -> Bytes:
        return np.unpackbits(column.astype(np.uint8, copy=False), axis=1, count=self.count, bitorder="little")


Layout = Symbols | PackedBits


@cache
def smallest_unsigned(count: int) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned type that holds 0 .. count-1."""
    for dtype in (np.uint8, np.uint16, np.uint32):
        if count - 1 <= np.iinfo(dtype).max:
            return dtype
    return np.uint64
