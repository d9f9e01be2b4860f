"""Every offset of a fetch is accounted for: by a record, or by what stands in its place."""

import struct
from functools import partial
from random import Random

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CorruptRecordException

from stream_app.faust_app.overrides import batches
from stream_app.faust_app.overrides.batches import (
    EXPANSION,
    FETCHED_BYTES,
    AllOffsets,
    BatchLimits,
    EpochRecord,
    RawBatches,
    SkippedRecords,
)
from stream_app.log.marks import Why
from tests.helpers import bombs
from tests.helpers.appetite import within_the_rule
from tests.helpers.bombs import GZIP, LZ4, SNAPPY, ZSTD, varint

CODECS = [0, GZIP, SNAPPY, LZ4, ZSTD]
CONTROL = 0x20
LIMIT = 1 << 20


def batch(offset: int, *deltas: int, last: int | None = None, kind: int = 0, epoch: int = 3) -> bytes:
    """A batch with empty records at these distances from its first offset."""
    records = b"".join(bombs.framed_at(delta, bombs.varint(-1) + bombs.varint(0) + bombs.varint(0)) for delta in deltas)
    final = max(deltas, default=0) if last is None else last
    return bombs.batch(kind, records, offset, epoch, final, len(deltas))


def moved(raw: bytes, offset: int) -> bytes:
    """A batch at another offset."""
    return struct.pack(">q", offset) + raw[8:]


def offsets(limits: BatchLimits, records: RawBatches, start: int = 0, topic: str = "reports") -> AllOffsets:
    return AllOffsets(limits, TopicPartition(topic, 0), records, None, start, None, None, True, 0)


def fetched(*raw: bytes, start: int = 0, topic: str = "t") -> tuple[list[tuple[int, int, Why | None, int]], int]:
    """First and last offset, why skipped, and epoch of everything that a fetch delivers; and where to fetch on."""
    found = offsets(BatchLimits(LIMIT, "reports"), RawBatches(b"".join(raw)), start, topic)
    delivered: list[EpochRecord] = list(found)
    return [
        (one.offset, one.last, one.why, one.leader_epoch)
        if isinstance(one, SkippedRecords)
        else (one.offset, one.offset, None, one.leader_epoch)
        for one in delivered
    ], found.next_fetch_offset


def test_records_have_the_leader_epoch_of_their_batch() -> None:
    assert fetched(batch(0, 0, 1), batch(2, 0, epoch=4)) == ([(0, 0, None, 3), (1, 1, None, 3), (2, 2, None, 4)], 3)


def test_a_marker_is_delivered_in_its_place() -> None:
    delivered, end = fetched(batch(0, 0), batch(1, 0, kind=CONTROL), batch(2, 0))
    assert (delivered[1], end) == ((1, 1, Why.MARKER, 3), 3)


def test_offsets_without_a_record_are_delivered_before_within_and_after_batches() -> None:
    delivered, end = fetched(batch(2, 0, 3, last=5), batch(10, 0))
    assert [(first, last) for first, last, why, _ in delivered if why is Why.ABSENT] == [(0, 1), (3, 4), (6, 7), (8, 9)]
    assert end == 11


@pytest.mark.parametrize("deltas", [(0, 0, 0), (0, 2, 1), (5, 6, 7), (0, 1, 1000), (-1, 0, 1)])
def test_records_that_are_not_where_they_belong_are_no_gap_in_the_log(deltas: tuple[int, ...]) -> None:
    """A gap stops the partition until an operator decides: no sender may cause one."""
    delivered, end = fetched(bombs.misplaced(*deltas), batch(3, 0))
    assert {why for _, _, why, _ in delivered} == {None, Why.UNDECODABLE}
    assert [last + 1 for _, last, _, _ in delivered[:-1]] == [first for first, _, _, _ in delivered[1:]]
    assert delivered[0][0] == 0 and end == 4


def test_what_was_read_before_is_not_delivered_again() -> None:
    assert fetched(batch(0, 0, 1, 2), start=2) == ([(2, 2, None, 3)], 3)
    assert fetched(moved(bombs.gzip_bomb(1), 0), batch(1, 0), start=1) == ([(1, 1, None, 3)], 2)


def test_the_rest_of_a_fetch_that_decompresses_to_much_is_left_for_the_next_fetch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many batches, each just below the limit, may be in one fetch of some megabytes."""
    monkeypatch.setattr(batches, "FETCHED_BYTES", 2 * LIMIT)
    raw = [moved(bombs.bomb(bombs.ZSTD, LIMIT - 600), offset) for offset in range(10)]
    delivered, end = fetched(*raw)
    assert len(delivered) == end == 3
    assert fetched(*raw[end:], start=end)[1] == 6


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_too_many_headers_or_records_is_skipped_before_anything_is_made_of_it(codec: int) -> None:
    raw = [bombs.header_bomb(10_000, codec), moved(bombs.record_bomb(3000, codec), 1), batch(3001, 0)]
    assert fetched(*raw) == ([(0, 0, Why.TOO_LARGE, 0), (1, 3000, Why.TOO_LARGE, 0), (3001, 3001, None, 3)], 3002)


def test_what_strangers_send_may_weigh_so_many_times_its_size_and_what_workers_write_any_number_of_times() -> None:
    """A counter is mostly zeros, and a broker may compress what it stores."""
    bomb = bombs.bomb(bombs.ZSTD, LIMIT // 2)
    assert len(bomb) * EXPANSION < LIMIT // 2
    assert fetched(bomb, topic="reports")[0] == [(0, 0, Why.TOO_LARGE, 0)]
    assert fetched(bomb, topic="changelog")[0] == [(0, 0, None, 0)]
    ordinary = bombs.bomb(bombs.LZ4, LIMIT // 2)
    assert fetched(ordinary, topic="reports")[0] == [(0, 0, None, 0)]


def test_a_batch_of_an_old_format_is_skipped() -> None:
    """Brokers convert them, so that one is a forgery."""
    old = bytearray(batch(0, 0))
    old[batches.FORMAT_PLACE] = 1
    delivered, end = fetched(bytes(old), batch(1, 0))
    assert [why for _, _, why, _ in delivered] == [Why.UNDECODABLE, None] and end == 2


def test_a_damaged_batch_is_an_error() -> None:
    raw = bytearray(batch(0, 0))
    raw[-1] ^= 1
    with pytest.raises(CorruptRecordException):
        fetched(bytes(raw))


# Batches of every structure, with extreme counts and lies: what they take is bounded by what was received.
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
    one, way = (
        partial(bombs.compressed, codec),
        random.choice(["whole"] * 4 + ["pieces", "empty", "cut", "more", "claims"]),
    )
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
    codec, count, headers = random.choice(CODECS), random.choice(COUNTS), random.choice(COUNTS)
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
        fetched = offsets(LIMITS, RawBatches(raw))
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
            fetched = offsets(LIMITS, records, reached)
            assert all(isinstance(one, SkippedRecords) for one in fetched)
            reached, fetches = fetched.next_fetch_offset, fetches + 1
    assert reached == len(kinds)
    assert fetches > len(many) * EXPANSION // FETCHED_BYTES, "much work without a pause for heartbeats"
