"""Names for the kinds of arrays: by their numbers, and by what the numbers are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
ShortWords = NDArray[np.uint16]
Words = NDArray[np.uint64]

Column = NDArray[np.unsignedinteger[Any]]
"""Memos or answers, a row each: symbols, or packed bits."""
Counts = NDArray[np.int64]
Rows = NDArray[np.int32]
"""Rows of counters, one for each gap."""
Devices = Words
Gaps = ShortWords
Places = NDArray[np.intp]
"""Indices into another array."""
Tokens = Words
Traits = Whole | None
"""What devices keep for life; None: nothing."""
Values = Whole
"""Values of an attribute, by their places in it."""
