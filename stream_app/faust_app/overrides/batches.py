"""aiokafka's reading of fetched batches, with every offset accounted for.

aiokafka goes over what is no record of a sender in silence: the markers that end transactions, and the offsets that a
compacted log lacks. A batch that it cannot decompress or decode is an error at every attempt. Here all of these are
delivered in their place, as `SkippedRecords`. Records have the leader epoch of their batch, which aiokafka ignores.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aiokafka.consumer.fetcher
from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import _MemoryRecordsPy
from crc32c import crc32c

from stream_app.kafka.decompression import TooLarge, limit_decompression
from stream_app.log.marks import NO_EPOCH
from stream_app.log.skipped import Why

EPOCH_PLACE, FORMAT_PLACE, CHECKSUM_PLACE, CHECKED_PLACE = 12, 16, 17, 21
"""Where in a batch its leader epoch, its format and its checksum are, in bytes, and from where on that is computed."""
FORMAT = 2
"""That of all batches since Kafka 0.11; earlier ones have their checksum elsewhere."""
FETCHED_BYTES = 16 << 20
"""After a batch with which so much is decompressed, the rest of a fetch is fetched again: batches may be bombs."""


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


class RawBatches(_MemoryRecordsPy):  # type: ignore[misc]
    """The batches of a fetch. `next_raw` are the bytes of the next one."""

    @property
    def next_raw(self) -> memoryview:
        raw: memoryview | None = self._next_slice
        assert raw is not None
        return raw


class AllOffsets(PartitionRecords):  # type: ignore[misc]
    """The records of a fetch from one partition, and what stands in the place of records."""

    next_fetch_offset: int

    def _unpack_records(self) -> Iterator[EpochRecord]:
        size = 0
        while self._records.has_next() and size < FETCHED_BYTES:
            raw = self._records.next_raw
            batch = self._records.next_batch()
            self._epoch = struct.unpack_from(">i", raw, EPOCH_PLACE)[0]
            if self._check_crcs and not is_sound(batch, raw):
                raise CorruptRecordException(f"{self._tp}: the checksum of a batch is wrong")
            if batch.next_offset <= self.next_fetch_offset:
                continue
            yield from self._absent_before(batch.base_offset)
            if batch.is_control_batch:
                yield self._skipped(batch.next_offset - 1, Why.MARKER)
                continue
            try:
                for record in batch:
                    if record.offset >= self.next_fetch_offset:
                        yield from self._absent_before(record.offset)
                        self.next_fetch_offset = record.offset + 1
                        size += len(record.value or b"")
                        yield self._consumer_record(self._tp, record)
            except TooLarge:
                yield self._skipped(batch.next_offset - 1, Why.TOO_LARGE)
            except Exception:  # whatever a sender has put there
                yield self._skipped(batch.next_offset - 1, Why.UNDECODABLE)
            yield from self._absent_before(batch.next_offset)

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


def is_sound(batch: Any, raw: memoryview) -> bool:
    """Whether a batch has the checksum that it names. aiokafka computes it, too: 38 us for 45 kB, here 3.3."""
    if raw[FORMAT_PLACE] < FORMAT:
        return bool(batch.validate_crc())
    (checksum,) = struct.unpack_from(">I", raw, CHECKSUM_PLACE)
    return bool(crc32c(raw[CHECKED_PLACE:]) == checksum)


def account_for_all_offsets(limit: int) -> None:
    """From now on, consumers of this process deliver `SkippedRecords`, and decompress no batch beyond a limit."""
    fetcher: Any = aiokafka.consumer.fetcher
    fetcher.PartitionRecords = AllOffsets
    fetcher.MemoryRecords = RawBatches
    limit_decompression("aiokafka", limit)
