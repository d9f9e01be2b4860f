"""JSON in which long lists of numbers become arrays, without an object for each number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic_core import from_json

LONG_BYTES = 4096
"""Lists with fewer bytes of text stay lists."""
_BEGINS = b'":['
_FIRST = b"-0123456789n"  # how a number, or null, begins


class _Found(NamedTuple):
    begin: int
    end: int


def parse(text: bytes) -> Any:
    """What a JSON text says. Long lists of numbers that are the entry of a key become arrays; null becomes NaN.

    >>> parse(b'{"a":[%s1.5]}' % (b"null," * 1000))["a"][[0, 1000]]
    array([nan, 1.5])
    """
    found = list(_long_lists(text))
    if not found:
        return from_json(text)
    try:
        arrays = [_array(text[begin:end]) for begin, end in found]
    except ValueError:  # not written as workers write it
        return from_json(text)
    ends = [0, *(one.end + 1 for one in found)]
    begins = [*(one.begin - 1 for one in found), len(text)]
    rest = (text[end:begin] for end, begin in zip(ends, begins, strict=True))
    key = "#"
    while f'"{key}"'.encode() in text:  # so that it stands for an array and for nothing else
        key += "#"
    numbered = (b'{"%s":%d}' % (key.encode(), number) for number in range(len(found)))
    short = b"".join(part for pair in zip(rest, [*numbered, b""], strict=True) for part in pair)
    return json.loads(short, object_hook=lambda entries: arrays[entries[key]] if key in entries else entries)


def _long_lists(text: bytes) -> Iterator[_Found]:
    """Where the insides of long lists that begin with a number are.

    A quote after a letter ends a string: the first quote of a string follows a bracket, comma or colon, and one inside
    a string follows a backslash. So a list that is found is none within a string.
    """
    at = text.find(_BEGINS)
    while at >= 0:
        begin = at + len(_BEGINS)
        if text[begin : begin + 1] in _FIRST and (text[at - 1 : at].isalnum() or text[at - 1 : at] == b"_"):
            end = text.find(b"]", begin)
            if end - begin >= LONG_BYTES:
                yield _Found(begin, end)
                begin = end
        at = text.find(_BEGINS, begin)


def _array(numbers: bytes) -> NDArray[Any]:
    """The numbers in a text, between commas."""
    whole = b"." not in numbers and b"n" not in numbers and b"e" not in numbers and b"E" not in numbers
    numbers = numbers.replace(b"null", b"nan")
    commas = np.flatnonzero(np.frombuffer(numbers, np.uint8) == ord(","))
    ends = np.append(commas, len(numbers)) - np.arange(len(commas) + 1)  # once the commas are gone
    offsets = np.append(0, ends).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(numbers.translate(None, b","))]
    texts = pa.Array.from_buffers(pa.string(), len(ends), buffers)
    return np.asarray(texts.cast(pa.int64() if whole else pa.float64()))
