"""Decompressing batches of records, and weighing what is in them, up to a limit.

A batch of a kilobyte can decompress to gigabytes, or hold millions of records or headers that are objects of their own
in memory. Both Kafka clients decompress whole batches and make objects of whatever they find. `opened` refuses such
batches before anything is made of them. kafka-python decompresses with functions that it finds by name in its modules:
`limit_decompression` replaces these names.
"""

import importlib
import struct
from collections.abc import Callable
from typing import Any

import cramjam
from kafka.record.util import decode_varint  # it reads ten bytes at most

from protocols.errors import LogError

Data = bytes | memoryview
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
"""The kinds of compression, as batches name them."""
NAMES = {"gzip_decode": GZIP, "snappy_decode": SNAPPY, "lz4_decode": LZ4, "zstd_decode": ZSTD}
"""What kafka-python calls the functions that decompress ..."""
MODULES = ("kafka.record.default_records", "kafka.record.legacy_records")
"""... and where it looks for them."""
RECORD_WEIGHT, HEADER_WEIGHT = 512, 128
"""The memory that a record and a header take as objects, without their bytes."""
SMALLEST_HEADER = 2
"""The bytes of a header without name and value: their lengths."""
GROWTH = 4
"""Room for the result is so many times as large as the data; where that is not enough, so many times as large again."""
XERIAL = b"\x82SNAPPY\x00"
"""How a stream of snappy blocks begins, as Java clients write it: then follow two integers and the blocks."""
XERIAL_HEAD = 16


class TooLarge(LogError):
    """A batch of records takes more memory than is allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"a batch of records takes more than {limit:,} bytes: decompressed, with {RECORD_WEIGHT} for each record "
            f"and {HEADER_WEIGHT} for each header",
            "HEARSAY_KAFKA_MAX_BATCH_BYTES is the limit; look for a client that sends such batches",
        )


def limit_decompression(limit: int) -> None:
    """From now on, kafka-python decompresses no batch in this process that would take more than a limit."""
    for path in MODULES:
        module: Any = importlib.import_module(path)
        for name, codec in NAMES.items():
            if hasattr(module, name):
                setattr(module, name, lambda data, codec=codec: opened(codec, data, limit)[0])


def opened(codec: int, data: Any, limit: int, count: int | None = None) -> tuple[Data, int]:
    """The records of a batch (so many, if it is known), decompressed, and what they weigh.

    Raises TooLarge if that is more than the limit, and any other error if they cannot be read.
    """
    records = decompressed(codec, data, limit) if codec else data
    return records, weight(records, limit, count)


def decompressed(codec: int, data: Any, limit: int) -> Data:
    """Data of a kind of compression. Raises TooLarge if they are more than the limit."""
    if codec == SNAPPY:
        return _snappy(bytes(data), limit)
    module = {GZIP: cramjam.gzip, LZ4: cramjam.lz4, ZSTD: cramjam.zstd}[codec]
    return _growing(module.decompress_into, data, limit)


def weight(records: Data, limit: int, count: int | None = None) -> int:
    """What records take in memory as objects. Raises TooLarge if that is more than a limit, ValueError if they lie.

    Nothing is made of a record: its beginning says how long it is and how many headers it has.

    >>> empty = bytes([12, 0, 0, 0, 1, 1, 0])  # a length of 6; neither key nor value; no headers
    >>> weight(3 * empty, limit=2000)
    1557
    """
    at, end, found = 0, len(records), 0
    total = end + RECORD_WEIGHT * (count or 0)
    try:
        while at < end and total <= limit:
            found += 1
            length, at = decode_varint(records, at)
            next_one = at + length
            if records[at] > 0x7F:  # attributes, of which none are defined: aiokafka reads a varint, others a byte
                raise ValueError("a record with attributes")
            at += 1
            while records[at] > 0x7F:  # its time
                at += 1
            at += 1
            while records[at] > 0x7F:  # its offset
                at += 1
            key, at = decode_varint(records, at + 1)
            value, at = decode_varint(records, at + max(0, key))
            headers, at = decode_varint(records, at + max(0, value))
            if not 0 <= headers <= (next_one - at) // SMALLEST_HEADER or next_one > end:
                raise ValueError("a record that is shorter than it says")
            total += HEADER_WEIGHT * headers + (RECORD_WEIGHT if count is None else 0)
            at = next_one
    except IndexError:
        raise ValueError("a record that does not end") from None
    if total > limit:
        raise TooLarge(limit)
    if count not in (None, found):
        raise ValueError(f"{found} records instead of {count}")
    return total


def _snappy(data: bytes, limit: int) -> bytes:
    """A single block, or a stream of blocks. A block begins with its length after decompression."""
    if not data.startswith(XERIAL) or len(data) <= XERIAL_HEAD:
        return _snappy_block(data, limit)
    out, at = bytearray(), XERIAL_HEAD
    while at < len(data):
        (size,) = struct.unpack_from("!i", data, at)
        at += 4
        if not 0 < size <= len(data) - at:
            raise ValueError(f"a snappy block of {size} bytes, where {len(data) - at} are left")
        out += _snappy_block(data[at : at + size], limit - len(out))
        at += size
    return bytes(out)


def _snappy_block(block: bytes, limit: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > limit:
        raise TooLarge(limit)
    return bytes(cramjam.snappy.decompress_raw(block))


def _growing(decompress_into: Callable[[Any, Any], int], data: Any, limit: int) -> memoryview:
    """Decompress into room that grows up to the limit, as how much is needed is not known before.

    >>> _growing(cramjam.lz4.decompress_into, bytes(cramjam.lz4.compress(b"abc" * 1000)), 3000) == b"abc" * 1000
    True
    """
    size = len(data)
    while True:
        size = min(GROWTH * size, limit)
        room = memoryview(bytearray(size))
        try:
            return room[: decompress_into(data, room)]
        except cramjam.DecompressionError as error:
            if "write whole buffer" not in str(error):
                raise
            if size == limit:
                raise TooLarge(limit) from None
