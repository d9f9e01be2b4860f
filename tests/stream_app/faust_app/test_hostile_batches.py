"""Batches of every structure, with extreme counts and lies: what they take is bounded by what was received.

A batch is drawn as a structure (records, headers, keys, values, how it is compressed and in how many pieces, and one
lie in it), not as random bytes: those end at the first check.
"""

import gzip
import struct
from collections.abc import Callable
from random import Random

import cramjam
import pytest
from aiokafka import TopicPartition

from stream_app.faust_app.overrides.batches import (
    EXPANSION,
    FETCHED_BYTES,
    AllOffsets,
    BatchLimits,
    RawBatches,
    SkippedRecords,
)
from tests.helpers import bombs
from tests.helpers.appetite import within_the_rule
from tests.helpers.bombs import GZIP, LZ4, SNAPPY, ZSTD, varint

LIMITS = BatchLimits(16 << 20, "reports")
CONTENTS = 6 << 20
"""How many bytes the records of a batch have at most, before they are compressed."""
RECEIVED = 4 << 20
"""As the reports topic allows."""
DRAWN = 150
MANY = 3000
"""More records than these are all at the same offset, which is made quickly."""
COUNTS = [0, 1, 2, 100, MANY, 60_000, 2_000_000]
SIZES = [-1, 0, 1, 100, 70_000, 4 << 20]
LIES = ("key", "value", "headers", "length", "attributes")
LYING = [-(1 << 31), -2, -1, 0, 1, 1000, (1 << 31) - 1, 1 << 40]

Compress = Callable[[bytes], bytes]
ONE_PIECE: dict[int, Compress] = {
    0: bytes,
    GZIP: lambda data: gzip.compress(data, 1),
    SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    LZ4: lambda data: bytes(cramjam.lz4.compress(data, level=1)),
    ZSTD: lambda data: bytes(cramjam.zstd.compress(data, level=1)),
}


def record(random: Random, delta: int, headers: int, lie: str = "") -> bytes:
    """A record that is what it says, or lies about one of its sizes."""
    key, value = random.choice(SIZES[:4]), random.choice(SIZES[:4] if delta else SIZES)
    said = {"key": key, "value": value, "headers": headers, "length": 0, "attributes": 0}
    if lie:
        said[lie] = random.choice(LYING)
    body = b"".join(
        [
            bytes([said["attributes"] & 0xFF]) + varint(random.choice([0, 1, -(1 << 60)])) + varint(delta),
            varint(said["key"]) + b"k" * key,
            varint(said["value"]) + b"v" * value,
            varint(said["headers"]) + random.choice([b"\x00\x01", b"\x00\x00", b"\x02h\x02v"]) * headers,
        ]
    )
    return varint(len(body) + said["length"]) + body


def in_pieces(random: Random, codec: int, data: bytes) -> tuple[str, bytes]:
    """Data as a codec has them: whole or in pieces, some of them empty, with something before, after or missing."""
    one, way = ONE_PIECE[codec], random.choice(["whole"] * 4 + ["pieces", "empty", "cut", "more", "claims"])
    if way == "pieces":
        size = random.choice([1, 50, 65_536])
        if codec == SNAPPY:
            return way, bombs.xerial(data[: 20_000 * size], size)
        return way, b"".join(one(data[at : at + size]) for at in range(0, min(len(data), 3000 * size), size))
    if way == "empty":
        if codec == SNAPPY:
            return way, bombs.xerial(b"") + (struct.pack("!i", 1) + b"\x00") * random.choice([1, 50_000])
        return way, one(b"") * random.choice([1, 20_000]) + one(data)
    if way == "claims" and codec == SNAPPY:
        claimed = random.choice([b"\xff\xff\xff\xff\x0f", b"\xff\xff\x7f", b"\x00"])
        size = struct.pack("!i", random.choice(LYING[:-1]))
        return way, random.choice([claimed, bombs.xerial(b"")[:16] + size + claimed]) + data[:100]
    if way == "claims" and codec == ZSTD:  # a window of 128 MiB, and blocks of 128 KiB of the same byte
        block = (131_072 << 3 | 1 << 1).to_bytes(3, "little") + b"\x00"
        return way, b"\x28\xb5\x2f\xfd\x00\x88" + block * random.choice([1, 1000, 100_000])
    whole = one(data)
    return way, whole + b"more" * random.choice([1, 100_000]) if way == "more" else whole[
        : -3 if way == "cut" else None
    ]


def drawn(random: Random) -> tuple[str, bytes, int]:
    """What a batch is, the batch, and the distance of its last offset."""
    codec, count, headers = random.choice(list(ONE_PIECE)), random.choice(COUNTS), random.choice(COUNTS)
    lie = random.choice([""] * 7 + ["key", "value", "headers", "length", "attributes", "count", "codec"])
    first = record(random, 0, min(headers, CONTENTS // 4), lie if lie in LIES else "")
    if count > MANY:
        count = CONTENTS // len(first)
        data = first * count
    else:
        data = b"".join([first, *(record(random, at, min(headers, 50)) for at in range(1, count))] if count else [])
    way, pieces = in_pieces(random, codec, data)
    said = random.choice([0, -1, 1, (1 << 31) - 1]) if lie == "count" else count
    named = random.choice([*range(8)]) if lie == "codec" else codec
    last = max(0, count - 1)
    what = f"codec {named}, {way}, {count} records of {headers} headers, lies about {lie}"
    return what, bombs.batch(named, pieces[:RECEIVED], last=last, count=said), last


@pytest.mark.parametrize("seed", range(2))
def test_a_batch_of_any_structure_takes_memory_and_time_in_proportion_to_its_size(seed: int) -> None:
    random = Random(seed)
    for _ in range(DRAWN // 2):
        what, raw, last = drawn(random)
        fetched = AllOffsets(
            LIMITS, TopicPartition("reports", 0), RawBatches(raw), None, 0, None, None, True, "read_uncommitted"
        )
        reached = -1
        with within_the_rule(len(raw), what):
            for one in fetched:
                assert one.offset == reached + 1, what
                reached = getattr(one, "last", one.offset)
        assert reached == last, what


def test_many_small_bombs_take_memory_and_time_in_proportion_to_their_size() -> None:
    """Failure would look like: a megabyte of them keeps a worker busy for a minute."""
    kinds = [bombs.header_bomb(5_000_000), bombs.bomb(ZSTD, 15 << 20), bombs.header_bomb(2000, LZ4)] * 80
    many = b"".join(struct.pack(">q", offset) + kind[8:] for offset, kind in enumerate(kinds))
    records, reached, fetches = RawBatches(many), 0, 0
    with within_the_rule(len(many), "small bombs"):
        while records.has_next():
            fetched = AllOffsets(LIMITS, TopicPartition("reports", 0), records, None, reached, None, None, True, 0)
            assert all(isinstance(one, SkippedRecords) for one in fetched)
            reached, fetches = fetched.next_fetch_offset, fetches + 1
    assert reached == len(kinds)
    assert fetches > len(many) * EXPANSION // FETCHED_BYTES, "much work without a pause for heartbeats"
