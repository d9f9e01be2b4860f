"""Batches are decompressed up to a limit, by whatever library and in whatever way."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable

import cramjam
import pytest

from stream_app.kafka.decompression import XERIAL, TooLarge, decoders

TEXT = b"reports " * 50_000


def xerial(data: bytes) -> bytes:
    """Blocks of snappy, as Java clients write them."""
    blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + 32_768])) for at in range(0, len(data), 32_768)]
    return XERIAL + struct.pack("!ii", 1, 1) + b"".join(struct.pack("!i", len(block)) + block for block in blocks)


WAYS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip_decode", gzip.compress),
    "gzip members": ("gzip_decode", lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:])),
    "snappy": ("snappy_decode", lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "snappy blocks": ("snappy_decode", xerial),
    "lz4": ("lz4_decode", lambda data: bytes(cramjam.lz4.compress(data))),
    "zstd": ("zstd_decode", lambda data: bytes(cramjam.zstd.compress(data))),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_may_be_as_large_as_the_limit_and_no_larger(way: str) -> None:
    name, compress = WAYS[way]
    assert decoders(len(TEXT))[name](memoryview(compress(TEXT))) == TEXT
    with pytest.raises(TooLarge, match="more than 399,999 bytes"):
        decoders(len(TEXT) - 1)[name](memoryview(compress(TEXT)))


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_that_is_damaged_is_not_taken_for_a_large_one(way: str) -> None:
    name, compress = WAYS[way]
    whole = compress(TEXT)
    with pytest.raises((cramjam.DecompressionError, zlib.error, struct.error)):
        decoders(len(TEXT))[name](whole[: len(whole) // 2])


def test_a_gigabyte_is_not_decompressed_to_find_that_it_is_too_much() -> None:
    """Failure would look like: this test takes a gigabyte of memory, and seconds."""
    member = gzip.compress(bytes(16 << 20))
    with pytest.raises(TooLarge):
        decoders(1 << 20)["gzip_decode"](member * 64)
