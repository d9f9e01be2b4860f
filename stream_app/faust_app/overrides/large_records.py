"""aiokafka's producer, with less work for large records: they are most of what is written while a backlog is read.

aiokafka copies a record into its batch, computes the checksum with a slow function, and copies the batch once for every
level of the request. Here a large record is a batch of its own that refers to the record's bytes, the checksum is that
of `crc32c`, and the pieces of a request are not joined. What is sent is the same, byte for byte.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.types import Array, Bytes, Int32, Schema
from aiokafka.record.util import encode_varint
from crc32c import crc32c

from stream_app.faust_app.overrides.connections import Pieces

LARGE_BYTES = 128 << 10
"""Values from this size on are not copied."""
FORMAT, NO_LEADER_EPOCH, NO_ATTRIBUTES = 2, -1, 0
BEFORE_LENGTH, BEFORE_CHECKSUM, CHECKED = struct.Struct(">qi"), struct.Struct(">ib"), struct.Struct(">hiqqqhii")
"""The head of a batch: what its length does not include, what its checksum does not include, and the rest."""


class LargeRecord(NamedTuple):
    """A record, with what aiokafka asks for when it is written."""

    timestamp: int  # in milliseconds
    key: bytes
    value: bytes
    offset: int = 0  # in its batch


class LargeRecordBuilder(BatchBuilder):  # type: ignore[misc]
    """aiokafka's builder of a batch, of which a large record without headers is the only one. It does not compress."""

    _large: LargeRecord | None = None
    _batch: Pieces | None = None
    _producer = -1, -1, 0  # its id, its epoch, and the sequence number of the batch

    def append(self, *, timestamp: int | None, key: bytes | None, value: bytes | None, headers: Any = None) -> Any:
        if self._large is not None:
            return None
        if key is None or value is None or len(value) < LARGE_BYTES or headers or self.record_count() or self.closed():
            return super().append(timestamp=timestamp, key=key, value=value, headers=headers)
        self._large = LargeRecord(int(time.time() * 1000) if timestamp is None else timestamp, key, value)
        self._relative_offset = 1
        self.close()
        return self._large

    def _set_producer_state(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        super()._set_producer_state(producer_id, producer_epoch, base_sequence)
        self._producer = producer_id, producer_epoch, base_sequence

    def _build(self) -> Any:
        if self._large is None:
            return super()._build()
        if self._batch is None:
            self._batch = batch_of(self._large, *self._producer)
        return self._batch


def batch_of(record: LargeRecord, producer_id: int, producer_epoch: int, sequence: int) -> Pieces:
    """A batch of one record."""
    head = bytes(3) + _varint(len(record.key)) + record.key + _varint(len(record.value))  # 0 after time and offset 0
    no_headers = _varint(0)
    times = record.timestamp, record.timestamp
    begin = CHECKED.pack(NO_ATTRIBUTES, 0, *times, producer_id, producer_epoch, sequence, 1)
    begin += _varint(len(head) + len(record.value) + len(no_headers)) + head
    checksum = crc32c(no_headers, crc32c(record.value, crc32c(begin)))
    begin = BEFORE_CHECKSUM.pack(NO_LEADER_EPOCH, FORMAT) + struct.pack(">I", checksum) + begin
    length = len(begin) + len(record.value) + len(no_headers)
    return Pieces((BEFORE_LENGTH.pack(0, length) + begin, record.value, no_headers))


def _varint(number: int) -> bytes:
    encoded = bytearray()
    encode_varint(number, encoded.append)
    return bytes(encoded)


def pieces_of(field: Any, value: Any) -> Iterator[bytes]:
    """A value of a request as aiokafka encodes it, in pieces that are not joined."""
    if isinstance(field, Array) and value is not None:
        yield Int32.encode(len(value))
        for item in value:
            yield from pieces_of(field.array_of, item)
    elif isinstance(field, Schema):
        for inner, item in zip(field.fields, value, strict=True):
            yield from pieces_of(inner, item)
    elif field is Bytes and value is not None:
        yield Int32.encode(len(value))
        yield from value.all if isinstance(value, Pieces) else [value]
    else:
        yield field.encode(value)


def write_large_records(producer: Any) -> None:
    """Let an aiokafka producer that does not compress write large records with less work."""
    accumulator, client = producer._message_accumulator, producer.client
    accumulator.create_builder = partial(LargeRecordBuilder, accumulator._batch_size, 0)
    client.send = partial(_send, client.send)


async def _send(send: Callable[..., Awaitable[Any]], node: int, request: Any, **options: Any) -> Any:
    if isinstance(request, ProduceRequest):
        request.build = partial(_build, request.build)
    return await send(node, request, **options)


def _build(build: Callable[[type], Any], version: type) -> Any:
    """A request whose pieces are not joined."""
    request = build(version)
    fields = [request.__dict__[name] for name in request.SCHEMA.names]
    request.encode = lambda: Pieces(tuple(pieces_of(request.SCHEMA, fields)))
    return request
