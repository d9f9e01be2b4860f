"""aiokafka's reading of fetched batches, with every offset accounted for.

aiokafka goes over what is no record of a sender in silence: the markers that end transactions, and the offsets that a
compacted log lacks. A batch that it cannot decompress or decode is an error at every attempt, and one that takes all
memory is the end. Here all of these are delivered in their place, as `SkippedRecords`, and a batch is weighed before
objects are made of it. Records have the leader epoch of their batch, which aiokafka ignores.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiokafka.consumer.fetcher
from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.memory_records import _MemoryRecordsPy
from crc32c import crc32c

from stream_app.kafka.decompression import TooLarge, opened
from stream_app.log.marks import NO_EPOCH, Why

FORMAT_PLACE, CHECKED_PLACE = 16, 21
"""Where in a batch its format is, in bytes, and from where on its checksum is computed, with the attributes first."""
HEAD = struct.Struct(">qiibIhi30xi")
"""What precedes the records: first offset, size, leader epoch, format, checksum, attributes, the distance of the last
offset, times and producer, and the number of records."""
FORMAT = 2
"""That of all batches since Kafka 0.11. Brokers convert what clients send in earlier ones, which are not read here."""
CODEC_BITS, CONTROL_BIT = 0x07, 0x20
"""Of a batch's attributes: how it is compressed, and whether it is a broker's own."""
FETCHED_BYTES = 16 << 20
"""After a batch with which so much is opened, the rest of a fetch is fetched again: batches may be bombs."""
EXPANSION = 256
"""How many times its size a stranger's batch may weigh: more than lz4 can compress, and several times what reports do.

Without it, a megabyte of small batches, each of which takes what is allowed, would keep a worker busy for a minute.
"""


@dataclass(frozen=True)
class BatchLimits:
    """What a batch may weigh: `most`, and if it is from a topic that strangers write to, in proportion to its size.

    Other topics have numbers that are mostly zero, which a broker may have compressed to next to nothing.
    """

    most: int
    strangers: str

    def of(self, topic: str, size: int) -> int:
        """For a batch of a topic that was received with this size."""
        return min(self.most, EXPANSION * size) if topic == self.strangers else self.most


@dataclass
class EpochRecord(ConsumerRecord):  # type: ignore[misc]
    """A record, and the leader epoch of its batch."""

    leader_epoch: int = NO_EPOCH


@dataclass
class SkippedRecords(EpochRecord):
    """In the place of records: the offsets from `offset` to `last` hold none to apply."""

    last: int = 0
    why: Why = Why.ABSENT


def last_offset(record: ConsumerRecord) -> int:
    return record.last if isinstance(record, SkippedRecords) else record.offset


class Fetched(bytes):
    """What was fetched from a partition. Some of its batches are opened already: what that gave, by first offset."""

    opened: dict[int, tuple[Any, int] | Exception]

    def __new__(cls, data: bytes, opened: dict[int, tuple[Any, int] | Exception]) -> "Fetched":
        fetched = super().__new__(cls, data)
        fetched.opened = opened
        return fetched


class RawBatches(_MemoryRecordsPy):  # type: ignore[misc]
    """The batches of a fetch, as bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.opened = data.opened if isinstance(data, Fetched) else {}

    def next_raw(self) -> memoryview:
        raw: memoryview | None = self._next_slice
        assert raw is not None
        self._cache_next()
        return raw


class AllOffsets(PartitionRecords):  # type: ignore[misc]
    """The records of a fetch from one partition, and what stands in the place of records."""

    next_fetch_offset: int

    def __init__(self, limits: BatchLimits, *fetched: Any) -> None:
        super().__init__(*fetched)
        self._limits = limits

    def _unpack_records(self) -> Iterator[EpochRecord]:
        spent = 0
        while self._records.has_next() and spent < FETCHED_BYTES:
            raw = self._records.next_raw()
            first, _, epoch, kind, checksum, attributes, distance, count = head_of(raw)
            last, is_whole = first + distance, count == distance + 1  # as senders made it: compaction leaves fewer
            self._epoch = epoch
            if self._check_crcs and kind == FORMAT and crc32c(raw[CHECKED_PLACE:]) != checksum:
                raise CorruptRecordException(f"{self._tp}: the checksum of a batch is wrong")
            if last < self.next_fetch_offset:
                continue
            yield from self._absent_before(first)
            if attributes & CONTROL_BIT:
                yield self._skipped(last, Why.MARKER)
                continue
            limit = self._limits.of(self._tp.topic, len(raw))
            try:
                records, weight = self._opened_ahead(first) or opened_batch(raw, kind, attributes, count, limit)
                spent += weight
                for place, record in enumerate(records):
                    if record.offset > last or (is_whole and record.offset != first + place):
                        raise ValueError("a record that is out of place")  # brokers do not look
                    if record.offset >= self.next_fetch_offset:
                        yield from self._absent_before(record.offset)
                        self.next_fetch_offset = record.offset + 1
                        yield self._consumer_record(self._tp, record)
            except TooLarge:
                spent += limit  # so much was done to find out
                yield self._skipped(last, Why.TOO_LARGE)
            except Exception:  # whatever a sender has put there
                spent += limit
                yield self._skipped(last, Why.UNDECODABLE)
            yield from self._absent_before(last + 1)

    def _opened_ahead(self, first: int) -> tuple[Any, int] | None:
        """A batch that was opened in another thread, once."""
        opened: tuple[Any, int] | Exception | None = self._records.opened.pop(first, None)
        if isinstance(opened, Exception):
            raise opened
        return opened

    def _absent_before(self, offset: int) -> Iterator[EpochRecord]:
        if offset > self.next_fetch_offset:
            yield self._skipped(offset - 1, Why.ABSENT)

    def _skipped(self, last: int, why: Why) -> SkippedRecords:
        first, self.next_fetch_offset = self.next_fetch_offset, last + 1
        return SkippedRecords(
            self._tp.topic, self._tp.partition, first, 0, 0, None, None, None, -1, -1, (), self._epoch, last, why
        )

    def _consumer_record(self, tp: TopicPartition, record: Any) -> EpochRecord:
        return EpochRecord(
            tp.topic,
            tp.partition,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            record.key,
            record.value,
            record.checksum,
            len(record.key or b""),
            len(record.value or b""),
            tuple(record.headers),
            self._epoch,
        )


def head_of(raw: memoryview) -> tuple[int, ...]:
    """The fields of `HEAD`. Of a batch of another format only the offset and the format mean anything."""
    if raw[FORMAT_PLACE] == FORMAT:
        return HEAD.unpack_from(raw)
    return int.from_bytes(raw[:8], "big"), 0, NO_EPOCH, raw[FORMAT_PLACE], 0, 0, 0, 0


def opened_batch(raw: memoryview, kind: int, attributes: int, count: int, limit: int) -> tuple[Any, int]:
    """The records of a batch as aiokafka reads them, and what they weigh. Raises TooLarge if that is beyond a limit."""
    if kind != FORMAT:
        raise ValueError(f"a batch of format {kind}")
    codec = attributes & CODEC_BITS
    records, weight = opened(codec, raw[HEAD.size :], limit, count)
    if not codec:
        return DefaultRecordBatch(raw), weight
    head = bytearray(raw[: HEAD.size])
    struct.pack_into(">h", head, CHECKED_PLACE, attributes & ~CODEC_BITS)
    return DefaultRecordBatch(b"".join((head, records))), weight


def account_for_all_offsets(limits: BatchLimits) -> None:
    """From now on, consumers of this process deliver `SkippedRecords`, and open no batch beyond the limits."""
    fetcher: Any = aiokafka.consumer.fetcher
    fetcher.PartitionRecords = partial(AllOffsets, limits)
    fetcher.MemoryRecords = RawBatches
