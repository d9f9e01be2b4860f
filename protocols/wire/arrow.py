"""The part of Arrow IPC that frames use, read strictly.

Frames come from untrusted senders, so only this module reads their bytes: it takes views of the record and never
decompresses, copies or allocates by a size that the sender gave. It accepts a stream of a schema and one record batch
of unsigned integers and fixed-size binaries without nulls, then the end; everything else in Arrow is refused.
Field numbers are those of Arrow's Message.fbs and Schema.fbs.

Reading flatbuffers that may be hostile: small accessors in which every read is checked.

A table starts with a signed distance back to its vtable: u16 vtable size, u16 table size, then one u16 per field, the
field's distance from the table or 0 where it is absent. Text, vectors and other tables are reached by an unsigned
distance. Whatever the bytes are, nothing worse than `Broken` is raised.
"""

from dataclasses import dataclass
from functools import lru_cache
from struct import Struct, unpack_from
from typing import Any

import numpy as np

from protocols.arrays.aliases import Column
from protocols.wire.content import MAX_ROWS

MOST_FIELDS = 8  # of a table that are read
MOST_TEXT = 1024  # bytes of a text: many fields may refer to the same one, of which each reading is a copy
U8, I16, U16, I32, U32, I64 = (Struct(f"<{code}") for code in "BhHiIq")


class Broken(ValueError):
    """The bytes are malformed."""


class Table:
    """A flatbuffer table; fields are asked for by their slot in the schema, of the first `MOST_FIELDS`."""

    __slots__ = "_data", "_distances", "_start"

    def __init__(self, data: bytes, start: int) -> None:
        vtable = start - _read(I32, data, start)
        fields = max(0, min((_read(U16, data, vtable) - 4) // 2, MOST_FIELDS))
        if vtable + 4 + 2 * fields > len(data):
            raise Broken("a table without its fields")
        self._data = data
        self._start = start
        self._distances: tuple[int, ...] = unpack_from(f"<{fields}H", data, vtable + 4)

    def number(self, slot: int, kind: Struct) -> int:
        """A number; 0 where it is left out (the default of every number read here)."""
        place = self._place(slot)
        return _read(kind, self._data, place) if place else 0

    def table(self, slot: int) -> "Table | None":
        place = self._place(slot)
        return Table(self._data, self._follow(place)) if place else None

    def text(self, slot: int) -> str:
        start, count = self._vector(slot, MOST_TEXT, 1)
        return self._data[start : start + count].decode()

    def tables(self, slot: int, most: int) -> "list[Table]":
        """A vector of tables, of no more than `most`."""
        start, count = self._vector(slot, most, 4)
        return [Table(self._data, self._follow(place)) for place in range(start, start + 4 * count, 4)]

    def numbers(self, slot: int, each: int, most: int) -> tuple[int, ...]:
        """A vector of structs of `each` signed 64-bit numbers, flat; no more than `most` structs."""
        start, count = self._vector(slot, most, 8 * each)
        return unpack_from(f"<{each * count}q", self._data, start)

    def has(self, slot: int) -> bool:
        return self._place(slot) != 0

    def _place(self, slot: int) -> int:
        """Where a field is; 0 if it is left out."""
        distance = self._distances[slot] if slot < len(self._distances) else 0
        return self._start + distance if distance else 0

    def _follow(self, place: int) -> int:
        return place + _read(U32, self._data, place)

    def _vector(self, slot: int, most: int, size: int) -> tuple[int, int]:
        """Where the entries of a vector start, each of this size, and how many there are: none if it is left out."""
        place = self._place(slot)
        if not place:
            return 0, 0
        start = self._follow(place)
        count = _read(U32, self._data, start)
        if count > most:
            raise Broken(f"{count} entries or bytes; at most {most}")
        if start + 4 + size * count > len(self._data):
            raise Broken("a vector runs past the end")
        return start + 4, count


def _read(kind: Struct, data: bytes, place: int) -> int:
    if not 0 <= place <= len(data) - kind.size:
        raise Broken("an offset points outside")
    number: int = kind.unpack_from(data, place)[0]
    return number


CONTINUATION = b"\xff\xff\xff\xff"
END = CONTINUATION + bytes(4)
SCHEMA, RECORD_BATCH = 1, 3  # kinds of messages
INT, FIXED_SIZE_BINARY = 2, 15  # kinds of columns
V4, V5 = 3, 4
MAX_MESSAGE = 64 << 10  # of metadata
MAX_COLUMNS = 256
MAX_WIDTH = 64 << 10  # bytes of one fixed-size binary


@dataclass(frozen=True)
class Head:
    """What precedes the body of a record batch: the schema's metadata, and the columns and where they are."""

    metadata: dict[str, str]
    rows: int
    columns: dict[str, np.dtype[Any]]  # by name; a fixed-size binary is an array of bytes
    places: tuple[int, ...]  # of each column's values, in the record
    end: int  # of the body, in the record


def read_head(data: bytes) -> Head:
    """The head of the one record batch of a stream. Raises ValueError, and nothing else, whatever the bytes."""
    body = _message_end(data, _message_end(data, 0))
    head = _read_head(data[:body])
    if head.end > len(data) or data[head.end :] not in (b"", END):
        raise Broken("the record does not end where its batch does")
    return head


def read_columns(data: bytes, head: Head) -> list[Column]:
    """The columns of a record, as views of it."""
    columns = zip(head.columns.values(), head.places, strict=True)
    return [np.frombuffer(data, dtype, head.rows, place) for dtype, place in columns]


def _message_end(data: bytes, start: int) -> int:
    """Where the metadata of the message at `start` ends."""
    begin = start + 8
    size = int.from_bytes(data[start + 4 : begin], "little", signed=True)
    if data[start : start + 4] != CONTINUATION or len(data) < begin:
        raise Broken("no Arrow message where one should start")
    if not 0 < size <= MAX_MESSAGE or size % 8 or begin + size > len(data):
        raise Broken(f"message metadata of {size} bytes")
    return begin + size


@lru_cache(maxsize=256)  # frames often have the same size
def _read_head(data: bytes) -> Head:
    schema_end = _message_end(data, 0)
    metadata, columns = _read_schema(data[8:schema_end])
    message, batch = _open(data[schema_end + 8 :], RECORD_BATCH)
    if batch.has(3) or batch.has(4):
        raise Broken("a compressed batch, or one with columns of variable layout")
    length, rows = message.number(3, I64), batch.number(0, I64)
    lengths, buffers = batch.numbers(1, 2, MAX_COLUMNS), batch.numbers(2, 2, 2 * MAX_COLUMNS)
    if length < 0:
        raise Broken("a body of less than nothing")
    if not 0 < rows <= MAX_ROWS:
        raise Broken(f"{rows} rows; 1 to {MAX_ROWS} are taken")
    if lengths != (rows, 0) * len(columns):
        raise Broken("columns of different lengths, or with nulls")
    if len(buffers) != 4 * len(columns):
        raise Broken("not two buffers for each column")
    # Each column has a validity buffer, unused without nulls, and then its values: of each its offset and its size.
    # Columns that shared their bytes would take many times the record's size once they are copied to be counted.
    end = 0
    for dtype, offset, size in zip(columns.values(), buffers[2::4], buffers[3::4], strict=True):
        if offset < end or offset % 8 or size < rows * dtype.itemsize or offset + size > length:
            raise Broken("a buffer that is misplaced or too short")
        end = offset + size
    return Head(metadata, rows, columns, tuple(len(data) + offset for offset in buffers[2::4]), len(data) + length)


def _open(metadata: bytes, kind: int) -> tuple[Table, Table]:
    message = Table(metadata, _read(U32, metadata, 0))
    header = message.table(2)
    if message.number(0, I16) not in (V4, V5) or message.number(1, U8) != kind or header is None:
        raise Broken("not a schema and one record batch of Arrow format 4 or 5")
    return message, header


@lru_cache(maxsize=256)  # one schema per survey, period and answered attributes
def _read_schema(metadata: bytes) -> tuple[dict[str, str], dict[str, np.dtype[Any]]]:
    message, schema = _open(metadata, SCHEMA)
    if message.number(3, I64) or schema.number(0, I16):
        raise Broken("the schema has a body or is not little-endian")
    pairs = [(entry.text(0), entry.text(1)) for entry in schema.tables(2, MAX_COLUMNS)]
    columns = [_read_field(field) for field in schema.tables(1, MAX_COLUMNS)]
    if len(dict(pairs)) < len(pairs) or len(dict(columns)) < len(columns):
        raise Broken("a name twice in the schema")
    return dict(pairs), dict(columns)


def _read_field(field: Table) -> tuple[str, np.dtype[Any]]:
    name, kind, parameters = field.text(0), field.number(2, U8), field.table(3)
    if field.has(4) or field.tables(5, MAX_COLUMNS) or field.tables(6, MAX_COLUMNS) or parameters is None:
        raise Broken("a column with a dictionary, children or metadata of its own")
    size = parameters.number(0, I32)
    if kind == INT and size in (8, 16, 32, 64) and not parameters.number(1, U8):
        return name, np.dtype(f"<u{size // 8}")
    if kind == FIXED_SIZE_BINARY and 0 < size <= MAX_WIDTH:
        return name, np.dtype((np.uint8, (size,)))
    raise Broken("a column that is neither unsigned integers nor fixed-size binary")
