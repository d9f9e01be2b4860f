"""State records and partials as bytes: a JSON head, then arrays of integers. Equal contents give equal bytes.

"h" | version: one digit | length of the head: u32 | head: JSON | array | array | ...     integers are little-endian

A position grows with the number of surveys: from `PLAIN_BYTES` on it is compressed ("z", then the record with gzip).

The version grows whenever a release writes something into the state that the one before would misunderstand, or leave
out when it writes the record again. A release refuses versions that are newer than its own.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.errors import AnotherRelease, StateError

RECORD_BYTES = 8 * 1024 * 1024
"""The largest record that the app writes."""
RECORD_COST = 1024
"""What a record costs besides its value, in memory and in time: small ones would otherwise be taken for nothing."""
VALUE_BYTES = RECORD_BYTES - 64 * 1024
"""The largest value of a record: there must be room for its key and its headers."""
VERSION = 4
"""The newest that this release writes: sums of windows, which release 0.2 would begin anew."""
COMMON = 3
"""What it writes where release 0.2 reads it rightly: workers of both may take over from each other."""
OLDEST = 3
"""The oldest that it reads."""
ANOTHER_RELEASE = "go on with the release that wrote it; docs/operations.md says what else can be done (upgrades)"
PLAIN_BYTES = RECORD_BYTES // 16
"""Positions up to this size are not compressed, which would take longer than it saves."""
COMPRESSED = b"z"
Head = dict[str, Any]
Array = NDArray[Any]


def pack(head: Head, arrays: Sequence[Array] = (), version: int | None = None) -> bytes:
    """One record; of the common version unless another one is given.

    >>> unpack(pack({"offset": 7}, [np.array([1, 2], dtype=np.uint64)]))
    ({'offset': 7}, [array([1, 2], dtype=uint64)])
    """
    little = [array.astype(array.dtype.newbyteorder("<"), order="C", copy=False) for array in arrays]
    shapes = [[array.dtype.str, *array.shape] for array in little]
    text = json.dumps([head, shapes], sort_keys=True, separators=(",", ":")).encode()
    return b"".join(
        [b"h%d" % (version or COMMON), len(text).to_bytes(4, "little"), text, *(array.data for array in little)]
    )


def pack_position(head: Head) -> bytes:
    """A record that has something of every survey: compressed if they are many.

    >>> len(pack_position({f"survey-{number}": [number, number] for number in range(40_000)})) < PLAIN_BYTES
    True
    """
    record = pack(head)
    return record if len(record) <= PLAIN_BYTES else COMPRESSED + compress(record)


def compress(text: bytes) -> bytes:
    """Equal texts give equal bytes. Higher levels save about a tenth, and take several times as long."""
    return gzip.compress(text, 1, mtime=0)


def decompress(value: bytes) -> bytes:
    """Raises ValueError if the value is not compressed."""
    try:
        return gzip.decompress(value)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(str(error)) from None


def unpack(data: bytes) -> tuple[Head, list[Array]]:
    """The head and the arrays of one record; the arrays are read-only views of its bytes."""
    try:
        if data[:1] == COMPRESSED:
            data = decompress(data[1:])
        _check_version(data)
        body = 6 + int.from_bytes(data[2:6], "little")
        head, shapes = json.loads(data[6:body])
        arrays = []
        for dtype, *shape in shapes:
            flat = np.frombuffer(data, dtype=dtype, count=prod(shape), offset=body)
            arrays.append(flat.astype(flat.dtype.newbyteorder("="), copy=False).reshape(shape))
            body += flat.nbytes
    except (ValueError, TypeError, KeyError) as error:
        raise StateError(
            f"a state record cannot be read: {error}", "was it written by another version, or by something else?"
        ) from error
    return head, arrays


def _check_version(data: bytes) -> None:
    if data[:1] != b"h" or not data[1:2].isdigit():
        raise ValueError("unknown format")
    version = int(data[1:2])
    if not OLDEST <= version <= VERSION:
        read = f"up to {VERSION}: a newer" if version > VERSION else f"from {OLDEST} on: an older"
        raise AnotherRelease(
            f"the state has version {version}, and this release reads versions {read} one wrote it", ANOTHER_RELEASE
        )


@contextmanager
def of_this_release(what: str) -> Iterator[None]:
    """Raise StateError, and nothing else, if state records are not of the shape that this release gives them."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StateError(
            f"{what} is not of the shape that this release writes: {type(error).__name__}: {error}", ANOTHER_RELEASE
        ) from error
