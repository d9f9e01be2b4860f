"""Decompressing batches of records, up to a limit.

A batch of a megabyte can decompress to gigabytes. Both Kafka clients decompress whole batches in memory, with functions
that they find by name in their modules: `limit_decompression` replaces these names by the functions here.
"""

from __future__ import annotations

import importlib
import struct
import threading
import zlib
from collections.abc import Callable
from typing import Any

import cramjam

from protocols.errors import LogError

Decoder = Callable[[Any], bytes]
MODULES = {
    "aiokafka": ("aiokafka.record._crecords", "aiokafka.record"),
    "kafka": ("kafka.record",),
}
"""The packages whose modules `default_records` and `legacy_records` have the names of the functions."""
GROWTH = 4
"""Where the room is not enough, it gets so many times as large."""
KEPT_BYTES = 4 << 20
"""So much room is kept for the next batch: to take it from the system each time, cleared, would cost more than to
decompress. Most batches need less."""
XERIAL = b"\x82SNAPPY\x00"
"""How a stream of snappy blocks begins, as Java clients write it: then follow two integers and the blocks."""
XERIAL_HEAD = 16


class _Kept(threading.local):
    """The room of each thread."""

    def __init__(self) -> None:
        self.room = bytearray(KEPT_BYTES)


_kept = _Kept()


class TooLarge(LogError):
    """A batch of records decompresses to more than is allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"a batch of records decompresses to more than {limit:,} bytes",
            "HEARSAY_KAFKA_MAX_BATCH_BYTES is the limit; look for a client that sends such batches",
        )


def limit_decompression(library: str, limit: int) -> None:
    """From now on, a client library of this process (a key of `MODULES`) decompresses no batch to more than a limit."""
    for package in MODULES[library]:
        for kind in ("default_records", "legacy_records"):
            module: Any = importlib.import_module(f"{package}.{kind}")
            for name, decoder in decoders(limit).items():
                if hasattr(module, name):
                    setattr(module, name, decoder)


def decoders(limit: int) -> dict[str, Decoder]:
    """A function for each kind of compression, by the name that both libraries have for it. They raise TooLarge."""
    return {
        "gzip_decode": lambda data: _gzip(data, limit),
        "snappy_decode": lambda data: _snappy(bytes(data), limit),
        "lz4_decode": lambda data: _growing(cramjam.lz4.decompress_into, data, limit),
        "zstd_decode": lambda data: _growing(cramjam.zstd.decompress_into, data, limit),
    }


def _gzip(data: Any, limit: int) -> bytes:
    """Like gzip, of several members in a row, too.

    >>> import gzip
    >>> _gzip(gzip.compress(b"abc") + gzip.compress(b"def"), 6)
    b'abcdef'
    """
    out, left = bytearray(), bytes(data)
    while left:
        member = zlib.decompressobj(wbits=31)
        out += member.decompress(left, limit + 1 - len(out))
        if len(out) > limit:
            raise TooLarge(limit)
        if not member.eof:
            raise zlib.error("the data end within a member")
        left = member.unused_data
    return bytes(out)


def _snappy(data: bytes, limit: int) -> bytes:
    """A single block, or a stream of blocks. A block begins with its length after decompression."""
    blocks = [data]
    if data.startswith(XERIAL) and len(data) > XERIAL_HEAD:
        blocks, at = [], XERIAL_HEAD
        while at < len(data):
            (size,) = struct.unpack_from("!i", data, at)
            blocks.append(data[at + 4 : at + 4 + size])
            at += 4 + size
    out = bytearray()
    for block in blocks:
        if len(out) + cramjam.snappy.decompress_raw_len(block) > limit:
            raise TooLarge(limit)
        out += bytes(cramjam.snappy.decompress_raw(block))
    return bytes(out)


def _growing(decompress_into: Callable[[Any, Any], int], data: Any, limit: int) -> bytes:
    """Decompress into room that grows up to the limit, as how much is needed is not known before.

    >>> _growing(cramjam.lz4.decompress_into, bytes(cramjam.lz4.compress(b"abc" * 1000)), 3000) == b"abc" * 1000
    True
    """
    room = memoryview(_kept.room)[:limit]
    while True:
        try:
            return bytes(room[: decompress_into(data, room)])
        except cramjam.DecompressionError as error:
            if "write whole buffer" not in str(error):
                raise
            if len(room) >= limit:
                raise TooLarge(limit) from None
            room = memoryview(bytearray(min(GROWTH * max(len(room), len(data)), limit)))
