"""State records and partials as bytes: a JSON head, then arrays of integers. Equal contents give equal bytes.

"h1" | length of the head: u32 | head: JSON | array | array | ...          integers are little-endian
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.errors import StateError

MAGIC = b"h1"
Head = dict[str, Any]
Array = NDArray[Any]


def pack(head: Head, arrays: Sequence[Array] = ()) -> bytes:
    """One record.

    >>> unpack(pack({"offset": 7}, [np.array([1, 2], dtype=np.uint64)]))
    ({'offset': 7}, [array([1, 2], dtype=uint64)])
    """
    little = [array.astype(array.dtype.newbyteorder("<"), copy=False) for array in arrays]
    shapes = [[array.dtype.str, *array.shape] for array in little]
    text = json.dumps([head, shapes], sort_keys=True, separators=(",", ":")).encode()
    return b"".join([MAGIC, len(text).to_bytes(4, "little"), text, *(array.tobytes() for array in little)])


def unpack(data: bytes) -> tuple[Head, list[Array]]:
    """The head and the arrays of one record; the arrays are read-only views of its bytes."""
    try:
        if data[:2] != MAGIC:
            raise ValueError("unknown format")
        body = 6 + int.from_bytes(data[2:6], "little")
        head, shapes = json.loads(data[6:body])
        arrays = []
        for dtype, *shape in shapes:
            count = int(np.prod(shape, dtype=np.int64))
            flat = np.frombuffer(data, dtype=dtype, count=count, offset=body)
            arrays.append(flat.astype(flat.dtype.newbyteorder("="), copy=False).reshape(shape))
            body += flat.nbytes
    except (ValueError, TypeError, KeyError) as error:
        raise StateError(
            f"a state record cannot be read: {error}", "was it written by another version, or by something else?"
        ) from error
    return head, arrays
