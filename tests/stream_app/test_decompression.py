"""Batches are decompressed and weighed up to a limit, by whatever library and in whatever way."""

import gzip
import struct
from collections.abc import Callable
from typing import Any

import cramjam
import pytest
from kafka.record import default_records

from stream_app.kafka.decompression import (
    GZIP,
    HEADER_WEIGHT,
    LZ4,
    RECORD_WEIGHT,
    SNAPPY,
    XERIAL,
    ZSTD,
    TooLarge,
    decompressed,
    limit_decompression,
    weight,
)
from tests.helpers import bombs
from tests.helpers.appetite import within_the_rule

TEXT = b"reports " * 50_000
Compress = Callable[[bytes], bytes]


def in_two(compress: Callable[[bytes], Any]) -> Compress:
    return lambda data: bytes(compress(data[:1000])) + bytes(compress(data[1000:]))


WAYS: dict[str, tuple[int, Compress]] = {
    "gzip": (GZIP, gzip.compress),
    "gzip members": (GZIP, in_two(gzip.compress)),
    "snappy": (SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "snappy blocks": (SNAPPY, bombs.xerial),
    "lz4": (LZ4, lambda data: bytes(cramjam.lz4.compress(data))),
    "lz4 frames": (LZ4, in_two(cramjam.lz4.compress)),
    "zstd": (ZSTD, lambda data: bytes(cramjam.zstd.compress(data))),
    "zstd frames": (ZSTD, in_two(cramjam.zstd.compress)),
}
UNREADABLE = cramjam.DecompressionError, ValueError, struct.error


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_may_be_as_large_as_the_limit_and_no_larger(way: str) -> None:
    codec, compress = WAYS[way]
    assert decompressed(codec, memoryview(compress(TEXT)), len(TEXT)) == TEXT
    with pytest.raises(TooLarge):
        decompressed(codec, memoryview(compress(TEXT)), len(TEXT) - 1)


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_that_is_damaged_is_not_taken_for_a_large_one(way: str) -> None:
    codec, compress = WAYS[way]
    whole = compress(TEXT)
    for damaged in (whole[: len(whole) // 2], whole + b"and more, which is nothing", b""):
        with pytest.raises(UNREADABLE):
            decompressed(codec, damaged, 2 * len(TEXT))


@pytest.mark.parametrize("size", [-(1 << 31), -4, -1, 0, 30, (1 << 31) - 1])
def test_a_snappy_block_of_an_impossible_length_is_refused(size: int) -> None:
    """Failure would look like: this test never ends, as a length of -4 leads back to itself."""
    block = bytes(cramjam.snappy.compress_raw(b"reports"))
    with pytest.raises(ValueError, match="a snappy block of"):
        decompressed(SNAPPY, XERIAL + struct.pack("!iii", 1, 1, size) + block, 1 << 20)


def test_a_size_that_a_snappy_block_claims_is_not_believed() -> None:
    with pytest.raises(UNREADABLE):
        decompressed(SNAPPY, b"\xff\xff\x3f" + b"no such data", 1 << 20)
    with pytest.raises(TooLarge):
        decompressed(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"no such data", 1 << 20)


def test_a_gigabyte_is_not_decompressed_to_find_that_it_is_too_much() -> None:
    """Failure would look like: this test takes a gigabyte of memory, and seconds."""
    member = gzip.compress(bytes(16 << 20))
    with pytest.raises(TooLarge):
        decompressed(GZIP, member * 64, 1 << 20)


def test_records_and_headers_have_a_weight_of_their_own() -> None:
    nothing = bombs.varint(-1) + bombs.varint(-1)
    plain = bombs.framed_at(0, nothing + bombs.varint(0))
    adorned = bombs.framed_at(300, nothing + bombs.varint(100) + bytes(200))
    data = 3 * plain + adorned
    expected = len(data) + 4 * RECORD_WEIGHT + 100 * HEADER_WEIGHT
    assert weight(data, expected) == weight(memoryview(data), expected, 4) == expected
    for count in (None, 4):
        with pytest.raises(TooLarge):
            weight(data, expected - 1, count)


@pytest.mark.parametrize("count", [-1, 0, 1, 3])
def test_a_batch_of_more_or_fewer_records_than_it_says_is_refused(count: int) -> None:
    two = 2 * bombs.framed_at(0, bombs.varint(-1) + bombs.varint(-1) + bombs.varint(0))
    with pytest.raises(ValueError, match="records instead of"):
        weight(two, 1 << 20, count)


@pytest.mark.parametrize(
    "body",
    [
        bombs.varint(-1) + bombs.varint(-1) + bombs.varint(1),
        bombs.varint(-1) + bombs.varint(-1) + bombs.varint(-1),
        bombs.varint(1 << 40) + bombs.varint(-1) + bombs.varint(0),
        bombs.varint(-1) + bombs.varint(1 << 62) + bombs.varint(0),
        b"\x80" * 100,
        b"",
    ],
)
def test_a_record_that_says_more_than_it_has_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"a record that|Out of int64 range"):
        weight(bombs.framed_at(0, body), 1 << 62)


def test_kafka_python_makes_no_objects_of_a_bomb() -> None:
    """It reads what others have written, dead letters for instance, and an audit reads the reports topic."""
    limit_decompression(16 << 20)
    for codec in (GZIP, LZ4):  # it has no library for the others
        for raw in (bombs.header_bomb(1_000_000, codec), bombs.record_bomb(40_000, codec)):
            with within_the_rule(len(raw), codec), pytest.raises(TooLarge):
                list(default_records.DefaultRecordBatch(raw))
