"""Columns of memos and answers, and the compiled loops that count them."""

from protocols.arrays.columns import Column, Layout, PackedBits, smallest_unsigned
from protocols.arrays.counting import frozen

__all__ = ["Column", "Layout", "PackedBits", "frozen", "smallest_unsigned"]
