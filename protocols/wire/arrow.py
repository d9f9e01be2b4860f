"""The part of Arrow IPC that frames use, read strictly.

Frames come from untrusted senders, so only this module reads their bytes: it takes views of the record and never
decompresses, copies or allocates by a size that the sender gave. It accepts a stream of a schema and one record batch
of unsigned integers and fixed-size binaries without nulls, then the end; everything else in Arrow is refused.
Field numbers are those of Arrow's Message.fbs and Schema.fbs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from protocols.arrays.aliases import Column
from protocols.wire.flatbuffer import I16, I32, I64, U8, Broken, Table

CONTINUATION = b"\xff\xff\xff\xff"
END = CONTINUATION + bytes(4)
SCHEMA, RECORD_BATCH = 1, 3  # kinds of messages
INT, FIXED_SIZE_BINARY = 2, 15  # kinds of columns
V4, V5 = 3, 4
MAX_MESSAGE = 64 << 10  # of metadata
MAX_COLUMNS = 256
MAX_WIDTH = 64 << 10  # bytes of one fixed-size binary


@dataclass(frozen=True)
class Batch:
    """A record batch: the schema's metadata, and columns as views of the record."""

    metadata: dict[str, str]
    rows: int
    columns: dict[str, Column]


@dataclass(frozen=True)
class _Column:
    name: str
    dtype: np.dtype[Any]
    width: int | None  # bytes of a fixed-size binary; None for integers

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize if self.width is None else self.width


@dataclass(frozen=True)
class _Layout:
    """The layout of a record batch's body: its length, and where its buffers are."""

    length: int
    rows: int
    lengths: tuple[int, ...]  # for each column its rows and its nulls
    places: tuple[int, ...]  # for each buffer its offset and its size


def read_batch(data: bytes, max_rows: int) -> Batch:
    """The one record batch of a stream. Raises ValueError, and nothing else, whatever the bytes."""
    schema, start = _message(data, 0)
    header, start = _message(data, start)
    metadata, columns = _read_schema(schema)
    layout = _read_layout(header)
    length = layout.length
    if length < 0 or data[start + length :] not in (b"", END) or start + length > len(data):
        raise Broken("the record does not end where its batch does")
    views = _read_columns(layout, columns, memoryview(data)[start : start + length], max_rows)
    return Batch(metadata, layout.rows, views)


def _message(data: bytes, start: int) -> tuple[bytes, int]:
    """The metadata of the message at `start`, and where its body begins."""
    begin = start + 8
    size = int.from_bytes(data[start + 4 : begin], "little", signed=True)
    if data[start : start + 4] != CONTINUATION or len(data) < begin:
        raise Broken("no Arrow message where one should start")
    if not 0 < size <= MAX_MESSAGE or size % 8 or begin + size > len(data):
        raise Broken(f"message metadata of {size} bytes")
    return data[begin : begin + size], begin + size


def _open(metadata: bytes, kind: int) -> tuple[Table, Table]:
    message = Table.root(metadata)
    header = message.table(2)
    if message.number(0, I16) not in (V4, V5) or message.number(1, U8) != kind or header is None:
        raise Broken("not a schema and one record batch of Arrow format 4 or 5")
    return message, header


@lru_cache(maxsize=256)  # one schema per survey, period and answered attributes
def _read_schema(metadata: bytes) -> tuple[dict[str, str], tuple[_Column, ...]]:
    message, schema = _open(metadata, SCHEMA)
    if message.number(3, I64) or schema.number(0, I16):
        raise Broken("the schema has a body or is not little-endian")
    pairs = [(entry.text(0), entry.text(1)) for entry in schema.tables(2, MAX_COLUMNS)]
    columns = tuple(_read_field(field) for field in schema.tables(1, MAX_COLUMNS))
    if len(dict(pairs)) < len(pairs) or len({column.name for column in columns}) < len(columns):
        raise Broken("a name twice in the schema")
    return dict(pairs), columns


def _read_field(field: Table) -> _Column:
    name, kind, parameters = field.text(0), field.number(2, U8), field.table(3)
    if field.has(4) or field.tables(5, MAX_COLUMNS) or field.tables(6, MAX_COLUMNS) or parameters is None:
        raise Broken("a column with a dictionary, children or metadata of its own")
    size = parameters.number(0, I32)
    if kind == INT and size in (8, 16, 32, 64) and not parameters.number(1, U8):
        return _Column(name, np.dtype(f"<u{size // 8}"), None)
    if kind == FIXED_SIZE_BINARY and 0 < size <= MAX_WIDTH:
        return _Column(name, np.dtype(np.uint8), size)
    raise Broken("a column that is neither unsigned integers nor fixed-size binary")


@lru_cache(maxsize=256)  # frames often have the same size
def _read_layout(metadata: bytes) -> _Layout:
    message, batch = _open(metadata, RECORD_BATCH)
    if batch.has(3) or batch.has(4):
        raise Broken("a compressed batch, or one with columns of variable layout")
    lengths, places = batch.numbers(1, 2, MAX_COLUMNS), batch.numbers(2, 2, 2 * MAX_COLUMNS)
    return _Layout(message.number(3, I64), batch.number(0, I64), lengths, places)


def _read_columns(layout: _Layout, columns: tuple[_Column, ...], body: memoryview, max_rows: int) -> dict[str, Column]:
    rows, places = layout.rows, layout.places
    if not 0 < rows <= max_rows:
        raise Broken(f"{rows} rows; 1 to {max_rows} are taken")
    if layout.lengths != (rows, 0) * len(columns):
        raise Broken("columns of different lengths, or with nulls")
    if len(places) != 4 * len(columns):
        raise Broken("not two buffers for each column")
    # Each column has a validity buffer, unused without nulls, and then its values.
    return {
        column.name: _view(column, body, offset, size, rows)
        for column, offset, size in zip(columns, places[2::4], places[3::4], strict=True)
    }


def _view(column: _Column, body: memoryview, offset: int, size: int, rows: int) -> Column:
    if offset < 0 or offset % 8 or size < rows * column.bytes or offset + size > len(body):
        raise Broken("a buffer that is misplaced or too short")
    values = np.frombuffer(body, column.dtype, rows * column.bytes // column.dtype.itemsize, offset)
    return values if column.width is None else values.reshape(rows, column.width)
