"""Kinds of arrays, columns of memos and answers, and the loops that count them."""

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
from protocols.arrays.columns import Layout, PackedBits, smallest_unsigned
from protocols.arrays.loops import are_compiled, use_compiled_loops
