"""Every offset of a fetch is accounted for: by a record, or by what stands in its place."""

import struct

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CorruptRecordException

from stream_app.faust_app.overrides import batches
from stream_app.faust_app.overrides.batches import (
    EXPANSION,
    AllOffsets,
    BatchLimits,
    EpochRecord,
    RawBatches,
    SkippedRecords,
)
from stream_app.log.marks import Why
from tests.helpers import bombs

CONTROL = 0x20
LIMIT = 1 << 20


@pytest.fixture
def little_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "FETCHED_BYTES", 2 * LIMIT)


def batch(offset: int, *deltas: int, last: int | None = None, kind: int = 0, epoch: int = 3) -> bytes:
    """A batch with empty records at these distances from its first offset."""
    records = b"".join(bombs.framed_at(delta, bombs.varint(-1) + bombs.varint(0) + bombs.varint(0)) for delta in deltas)
    final = max(deltas, default=0) if last is None else last
    return bombs.batch(kind, records, offset, epoch, final, len(deltas))


def moved(raw: bytes, offset: int) -> bytes:
    """A batch at another offset."""
    return struct.pack(">q", offset) + raw[8:]


def fetched(*raw: bytes, start: int = 0, topic: str = "t") -> tuple[list[tuple[int, int, Why | None, int]], int]:
    """First and last offset, why skipped, and epoch of everything that a fetch delivers; and where to fetch on."""
    tp, records = TopicPartition(topic, 0), RawBatches(b"".join(raw))
    found = AllOffsets(BatchLimits(LIMIT, "reports"), tp, records, None, start, None, None, True, 0)
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


def test_batches_that_decompress_to_too_much_are_skipped_whatever_the_codec() -> None:
    raw = [bombs.bomb(codec, 4 << 20) for codec in (bombs.SNAPPY, bombs.LZ4, bombs.ZSTD)] + [bombs.gzip_bomb(1)]
    delivered, end = fetched(*(moved(one, offset) for offset, one in enumerate(raw)), batch(4, 0))
    assert [why for _, _, why, _ in delivered] == [Why.TOO_LARGE] * 4 + [None]
    assert end == 5


def test_a_batch_that_cannot_be_read_is_skipped_and_the_next_is_not() -> None:
    delivered, _ = fetched(bombs.poisoned(), batch(1, 0))
    assert [why for _, _, why, _ in delivered] == [Why.UNDECODABLE, None]


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


@pytest.mark.usefixtures("little_at_once")
def test_the_rest_of_a_fetch_that_decompresses_to_much_is_left_for_the_next_fetch() -> None:
    """Many batches, each just below the limit, may be in one fetch of some megabytes."""
    raw = [moved(bombs.bomb(bombs.ZSTD, LIMIT - 600), offset) for offset in range(10)]
    delivered, end = fetched(*raw)
    assert len(delivered) == end == 3
    assert fetched(*raw[end:], start=end)[1] == 6


@pytest.mark.parametrize("codec", [0, bombs.GZIP, bombs.SNAPPY, bombs.LZ4, bombs.ZSTD])
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
