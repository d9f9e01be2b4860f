"""Exact state from a topic: one lane for each of its partitions that is ours (DESIGN 5).

A lane feeds the records of its partition to a pure log reader, and writes what the reader wants written: one flush at
a time, while the reader goes on. Readers are made anew from the changelog whenever partitions are assigned, and the
consumer is set to where they want to read on: the state is the authority, not the group's offset.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import structlog
from aiokafka import ConsumerRecord
from faust.types import TP

from stream_app.faust_app.crash import fatal
from stream_app.faust_app.monitoring.metrics import FLUSH_SECONDS
from stream_app.faust_app.overrides.app import FaustApp
from stream_app.faust_app.overrides.table import StateTable
from stream_app.faust_app.writing import Writer
from stream_app.kafka.topics import RECORD_BYTES
from stream_app.log.log_reader import LogReader

EVERY_SECONDS = 1.0
"""How long what was read may wait to be written."""
SHOW_EVERY_SECONDS = 3.0
"""How often results that are not final are passed on."""
FLUSH_BYTES = RECORD_BYTES // 4
"""Write as soon as this much was read ..."""
MOST_BYTES = RECORD_BYTES // 2
"""... and stop reading when this much waits for an earlier flush. Tokens are a part of what was read: they fit."""
AT_ONCE_BYTES = 512 << 10
"""How much is fed to a reader in one go, unless a single record is larger."""
MOST_ATTEMPTS = 10
"""How often to look for a record before it counts as missing from the log."""
GIVE_UP_SECONDS = 5.0
"""How long a last flush may take; nothing is lost when it does not succeed."""

log = structlog.get_logger(__name__)


R = TypeVar("R", bound=LogReader)
Make = Callable[[int, Mapping[bytes, bytes], int], R]  # partition, records, where its log begins
End = Callable[[TP], int]  # where a topic ends now
Apply = Callable[["Lane[R]", Sequence[ConsumerRecord], End], Awaitable[bool]]  # whether to write at once


class Lane(Generic[R]):
    """One partition: its reader, and the task that writes its flushes one after the other."""

    def __init__(self, tp: TP, reader: R, table: StateTable, writer: Writer) -> None:
        self.tp = tp
        self.reader = reader
        self.written_through = reader.next_offset - 1
        self._table = table
        self._writer = writer
        self.slipped = False  # a record was read that is not the next one
        self.watched = -1
        self.attempts = 0
        self._unwritten_bytes = 0
        self._finishing = False
        self._closed = False
        self._wanted = asyncio.Event()
        self._taken = asyncio.Event()
        self._shown_at = 0.0
        self._task = asyncio.create_task(self._keep_writing())

    async def read(self, size: int, write_now: bool) -> None:
        """Note that records were fed to the reader; wait if writing has fallen too far behind."""
        self._unwritten_bytes += size
        if write_now or self._unwritten_bytes >= FLUSH_BYTES:
            self._wanted.set()
        if self._unwritten_bytes >= MOST_BYTES and not self._closed:
            self._taken.clear()
            await self._taken.wait()

    async def finish(self) -> None:
        """Write what there is, for the last time."""
        self._finishing = True
        self._wanted.set()
        await self._task

    def close(self) -> None:
        """Write no more: somebody else may own the partition by now."""
        self._closed = True
        self._task.cancel()
        self._taken.set()

    async def _keep_writing(self) -> None:
        with fatal(f"writing the state of {self.tp.topic} {self.tp.partition}"):
            while not self._finishing:
                await self._write_next()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wanted.wait(), EVERY_SECONDS)
                self._wanted.clear()
            await self._write_next()

    async def _write_next(self) -> None:
        show = self._finishing or time.monotonic() - self._shown_at >= SHOW_EVERY_SECONDS
        if show:
            self._shown_at = time.monotonic()
        flush = self.reader.flush(show)
        self._unwritten_bytes = 0
        self._taken.set()
        if flush:
            with FLUSH_SECONDS.labels(self._table.name).time():
                await self._writer.write(flush, self._table)
        self.written_through = flush.offset


class Lanes(Generic[R]):
    """The lanes of one topic. Faust tells when partitions come and go, and feeds the agent."""

    def __init__(self, app: FaustApp, topic: str, writer: Writer, make: Make[R], apply: Apply[R]) -> None:
        self.topic = topic
        self.is_open = False
        self._app = app
        self._writer = writer
        self._make = make
        self._apply = apply
        self._lanes: dict[int, Lane[R]] = {}
        self._assignments = 0
        self._acknowledged: dict[TP, int] = {}

    def __iter__(self) -> Iterator[Lane[R]]:
        return iter(list(self._lanes.values()))

    @property
    def readers(self) -> list[R]:
        return [lane.reader for lane in self]

    @property
    def progress(self) -> int:
        """Grows with every record."""
        return sum(lane.reader.next_offset for lane in self)

    @property
    def lag(self) -> dict[TP, int]:
        """How many records of each partition are not read yet."""
        return {lane.tp: max(0, self._end(lane.tp) - lane.reader.next_offset) for lane in self}

    def get(self, partition: int) -> Lane[R] | None:
        return self._lanes.get(partition)

    async def open(self, partitions: Iterable[int], table: StateTable) -> None:
        """These partitions are ours and the table has their state: read on where it says."""
        self.close()
        assignment = self._assignments
        tps = [TP(self.topic, partition) for partition in sorted(partitions)]
        begins = await self._app.offsets.begins(tps)
        made = await asyncio.gather(
            *(asyncio.to_thread(self._make, tp.partition, table.records(tp.partition), begins[tp]) for tp in tps)
        )
        if assignment != self._assignments:
            return  # revoked while we were at it: the next assignment calls again
        readers = dict(zip(tps, made, strict=True))
        starts = {tp: reader.next_offset for tp, reader in readers.items()}
        if not await self._app.batch_consumer.read_from(starts) or assignment != self._assignments:
            return
        for tp, reader in readers.items():
            if reader.missing:
                log.error("records are missing", what=reader.missing)
            self._lanes[tp.partition] = Lane(tp, reader, table, self._writer)
        self._acknowledged = dict(starts)
        self.is_open = True
        log.info("reading", topic=self.topic, next_offsets={tp.partition: offset for tp, offset in starts.items()})

    def close(self) -> None:
        """The partitions are no longer ours."""
        self._assignments += 1
        self.is_open = False
        for lane in self._lanes.values():
            lane.close()
        self._lanes.clear()

    async def finish(self) -> None:
        """Write what there is before leaving."""
        lanes, self._lanes = list(self._lanes.values()), {}
        self.is_open = False
        try:
            await asyncio.wait_for(asyncio.gather(*(lane.finish() for lane in lanes)), GIVE_UP_SECONDS)
        except TimeoutError:
            log.warning("leaving without a last flush; what it would have written is counted again", topic=self.topic)

    async def consume(self, stream: Any) -> None:
        """The body of the agent: Faust's acknowledgements are off, ours follow what is written."""
        with fatal(f"reading {self.topic}"):
            async for event in stream.noack().events():
                for records in in_portions(event.value, AT_ONCE_BYTES):
                    if event.message.generation_id == self._app.consumer_generation_id:
                        await self._feed(records)

    async def _feed(self, records: Sequence[ConsumerRecord]) -> None:
        """Feed records of one partition to its reader, from the one it wants."""
        lane = self._lanes.get(records[0].partition)
        if lane is None:
            return
        wanted = [record for record in records if record.offset >= lane.reader.next_offset]
        if not wanted:
            return
        lane.slipped = wanted[0].offset > lane.reader.next_offset
        if not lane.slipped or lane.attempts > MOST_ATTEMPTS:
            write_now = await self._apply(lane, wanted, self._end)
            await lane.read(sum(len(record.value or b"") for record in wanted), write_now)

    async def watch(self, idle: bool) -> None:
        """Go back for records that were published and did not reach us, in spite of idling.

        Faust may lose some when partitions are assigned, and forget to fetch from a partition whose queue was full
        when it was emptied. A record that is still not there after several attempts is really missing, and the reader
        says so when it is given the next one.
        """
        for lane in self:
            wanted = lane.reader.next_offset
            if wanted != lane.watched:
                lane.watched, lane.attempts = wanted, 0
            elif self._end(lane.tp) > wanted and (idle or lane.slipped):
                lane.attempts += 1
                log.info("reading again", topic=self.topic, partition=lane.tp.partition, offset=wanted)
                await self._app.batch_consumer.read_again(lane.tp, wanted)

    async def acknowledge(self) -> None:
        """Let the group's offsets follow what is written, for those who watch the lag."""
        offsets = {lane.tp: lane.written_through + 1 for lane in self}
        moved = {tp: offset for tp, offset in offsets.items() if offset > self._acknowledged.get(tp, -1)}
        if moved and not self._app.rebalancing:
            self._acknowledged |= moved
            await self._app.batch_consumer.commit_offsets(moved)

    def _end(self, tp: TP) -> int:
        return self._app.batch_consumer.end_of(tp)


def in_portions(records: Sequence[ConsumerRecord], size: int) -> Iterator[Sequence[ConsumerRecord]]:
    """Records that follow one another, in portions of about so many bytes, and of one record at least."""
    start, held = 0, 0
    for place, record in enumerate(records):
        length = len(record.value or b"")
        if place > start and (held + length > size or record.offset != records[place - 1].offset + 1):
            yield records[start:place]
            start, held = place, 0
        held += length
    if records:
        yield records[start:]
