"""Batches that no client of ours makes: they decompress to far more than was sent, or cannot be read."""

import asyncio
import gzip
import struct
import time
from typing import Any

import cramjam
from aiokafka import AIOKafkaProducer
from aiokafka.record.util import calc_crc32c

from servers.settings import KafkaSettings
from stream_app.kafka.decompression import GZIP, LZ4, SNAPPY, XERIAL, ZSTD

BLOCK = 16 << 20


def gzip_bomb(blocks: int) -> bytes:
    """One record of so many blocks of zeros, as gzip: a member for each block."""
    head, tail = record_parts(blocks * BLOCK)
    zeros = gzip.compress(bytes(BLOCK))
    return batch(GZIP, gzip.compress(head) + zeros * blocks + gzip.compress(tail))


def bomb(codec: int, size: int) -> bytes:
    """One record of so many zeros."""
    head, tail = record_parts(size)
    return batch(codec, compressed(codec, head + bytes(size) + tail))


def header_bomb(headers: int, codec: int = ZSTD) -> bytes:
    """One record of so many headers without name and value."""
    body = varint(-1) + varint(-1) + varint(headers) + bytes([0, 1]) * headers
    return batch(codec, compressed(codec, framed_at(0, body)))


def record_bomb(records: int, codec: int = ZSTD) -> bytes:
    """So many records with nothing in them."""
    nothing = varint(-1) + varint(-1) + varint(0)
    framed = b"".join([framed_at(delta, nothing) for delta in range(records)])
    return batch(codec, compressed(codec, framed), last=records - 1, count=records)


def member_bomb(size: int) -> bytes:
    """One record of so many letters, as gzip with a member for each."""
    head, tail = record_parts(size)
    return batch(GZIP, gzip.compress(head) + gzip.compress(b"?") * size + gzip.compress(tail))


def compressed(codec: int, data: bytes) -> bytes:
    """Data as a client would compress them."""
    if codec == GZIP:
        return gzip.compress(data)
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(data))
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    if codec == LZ4:
        compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
        compressor.compress(data)
        return bytes(compressor.finish())
    return data


def xerial(data: bytes, size: int = 32_768) -> bytes:
    """Blocks of snappy, as Java clients write them; at least one, which may be empty."""
    blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + size])) for at in range(0, len(data) or 1, size)]
    return XERIAL + struct.pack("!ii", 1, 1) + b"".join(struct.pack("!i", len(block)) + block for block in blocks)


def poisoned() -> bytes:
    """One record with a header whose name is not text."""
    return batch(0, framed_at(0, varint(-1) + varint(1) + b"?" + varint(1) + varint(2) + b"\xff\xfe" + varint(-1)))


def misplaced(*deltas: int) -> bytes:
    """Records at these distances from the first offset of a batch that has as many offsets as records."""
    nothing = varint(-1) + varint(-1) + varint(0)
    records = b"".join(framed_at(delta, nothing) for delta in deltas)
    return batch(0, records, last=len(deltas) - 1, count=len(deltas))


def record_parts(size: int) -> tuple[bytes, bytes]:
    """What comes before and after a value of this size."""
    fixed = b"\x00" + varint(0) + varint(0) + varint(-1) + varint(size)
    return varint(len(fixed) + size + 1) + fixed, varint(0)


def framed_at(delta: int, body: bytes) -> bytes:
    """A record at this distance from the first offset of its batch: key, value and headers are its body."""
    whole = b"\x00" + varint(0) + varint(delta) + body
    return varint(len(whole)) + whole


def varint(number: int) -> bytes:
    """An integer as records have it: small ones, of either sign, take few bytes."""
    left, out = number << 1 if number >= 0 else (-number << 1) - 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def batch(kind: int, records: bytes, offset: int = 0, epoch: int = 0, last: int = 0, count: int = 1) -> bytes:
    """A batch of records that are compressed already, at an offset; `last` is the distance of its last record."""
    now = int(time.time() * 1000)
    checked = struct.pack(">hiqqqhii", kind, last, now, now, -1, -1, -1, count) + records
    return struct.pack(">qiibI", offset, len(checked) + 9, epoch, 2, calc_crc32c(checked)) + checked


def send_batches(kafka: KafkaSettings, topic: str, partition: int, batches: list[bytes]) -> None:
    """Send batches as they are."""

    async def send() -> None:
        producer = AIOKafkaProducer(**kafka.client_options(), max_request_size=4 << 20)
        await producer.start()
        try:
            for raw in batches:
                builder: Any = producer.create_batch()
                builder.append(timestamp=None, key=None, value=b"")
                builder.close()
                builder._buffer = bytearray(raw)
                await (await producer.send_batch(builder, topic, partition=partition))
        finally:
            await producer.stop()

    asyncio.run(send())
