"""Kinds of arrays, columns of memos and answers, and the compiled loops that count them."""

from protocols.arrays import lazy_arrow
from protocols.arrays.aliases import (
    Bytes,
    Column,
    Counts,
    Devices,
    Floats,
    Gaps,
    Mask,
    Places,
    Rows,
    Tokens,
    Traits,
    Values,
    Whole,
    Words,
)
from protocols.arrays.columns import Layout, PackedBits, frozen, smallest_unsigned
