"""Exact state from a topic: one task for each of its partitions that is assigned to this worker.

Records of a partition go to its pure log reader, which counts reports or merges partials, and the task writes what the
reader wants written, while the reader goes on. Whenever partitions are assigned, their readers are recovered from the
changelog, and the consumer is set to the offsets at which they read on: the state is the authority, not the group's
offset.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import structlog
from faust.types import TP

from protocols.randomness import Keyring
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER
from servers.settings import KafkaSettings
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.counting.state import Period
from stream_app.faust_app.broker import LogWatch, Reading, StateTable, Surveys
from stream_app.faust_app.crash import fatal
from stream_app.faust_app.monitoring import PartitionState, note_finals, note_passed_over, outcomes_of
from stream_app.faust_app.overrides.app import FaustApp
from stream_app.faust_app.overrides.batches import EpochRecord, SkippedRecords, last_offset
from stream_app.faust_app.task import PartitionTask, R
from stream_app.faust_app.writing import Writer
from stream_app.kafka.reading import header
from stream_app.kafka.topics import Topics
from stream_app.log.codec import RECORD_COST
from stream_app.log.log_reader import LogReader
from stream_app.log.marks import FaultKind, LogFault, Skipped
from stream_app.log.recovery import NONE_FAIL, Errors
from stream_app.merging.merger import Merger


@dataclass(frozen=True)
class WorkerOptions:
    """How a worker runs. `check_tokens=False` is for senders that are known never to repeat."""

    kafka: KafkaSettings
    topics: Topics
    clock_key: bytes
    presence_key: bytes
    session_seconds: float = 10.0
    check_tokens: bool = True


PORTION_BYTES = 512 << 10
"""How much a reader is given at once, unless a single record is larger ..."""
PORTION_RECORDS = 500
"""... and how many records. Between portions the event loop serves others."""
AT_ONCE = 2
"""How many partitions are read at once. A fetch is several flushes long, and memory holds a fetch of each."""
MAX_ATTEMPTS = 10
"""How often to fetch a record again before it counts as missing from the log."""
LAST_FLUSH_SECONDS = 5.0
"""How long the last flush may take; nothing is lost if it does not succeed."""

ADDED = (
    "reports in the added partitions are not counted, and no period is closed: stop the senders, let this worker count "
    "what is in the others, and read in docs/operations.md what to do about partitions that were added"
)

log = structlog.get_logger(__name__)


async def in_turns(
    events: AsyncIterable[Any], partition: Callable[[Any], int], work: Callable[[Any], Coroutine[Any, Any, None]]
) -> None:
    """Work on events of `AT_ONCE` partitions at once; on those of one partition one after the other.

    Work is cancelled when this is, or ends in an error.
    """
    working: dict[int, asyncio.Task[None]] = {}
    async with asyncio.TaskGroup() as group:
        async for event in events:
            while (own := working.get(partition(event))) or len(working) == AT_ONCE:
                await asyncio.wait([own] if own else working.values(), return_when=asyncio.FIRST_COMPLETED)
                working = {number: task for number, task in working.items() if not task.done()}
            working[partition(event)] = group.create_task(work(event))


@dataclass(eq=False)
class PartitionTasks(ABC, Generic[R]):
    """The partition tasks of one topic: opened when partitions are assigned, closed when they are revoked."""

    app: FaustApp
    topic: str
    table: StateTable
    writer: Writer
    watch: LogWatch
    options: WorkerOptions
    surveys: Surveys
    topic_fault: LogFault | None = None  # of all partitions: they are read on as far as that is safe
    is_open: bool = False
    _tasks: dict[int, PartitionTask[R]] = field(default_factory=dict)
    _assignments: int = 0
    _acknowledged: dict[TP, int] = field(default_factory=dict)

    @property
    @abstractmethod
    def partitions(self) -> int:
        """How many partitions the topic had when its state was begun: others have no state, and are not read."""

    @abstractmethod
    def make(self, partition: int, records: Mapping[bytes, bytes], log_start: int, failing: Errors) -> R:
        """The reader of a partition, recovered from its state records; its log begins at an offset."""

    @abstractmethod
    async def apply(self, task: PartitionTask[R], received: Sequence[EpochRecord]) -> bool:
        """Give records to the reader of a partition. Returns whether to flush now."""

    def __iter__(self) -> Iterator[PartitionTask[R]]:
        return iter(list(self._tasks.values()))

    @property
    def progress(self) -> int:
        """Grows with every record that is read."""
        return sum(task.reader.next_offset for task in self)

    def states(self) -> list[PartitionState]:
        """What metrics say of each partition."""
        return [
            PartitionState(
                task.tp,
                task.reader,
                max(0, self.app.batch_consumer.end_of(task.tp) - task.next_offset),
                task.fault or self.topic_fault,
                task.is_position_refused,
            )
            for task in self
        ]

    def get(self, partition: int) -> PartitionTask[R] | None:
        return self._tasks.get(partition)

    async def open(self, partitions: Iterable[int], failing: Mapping[int, Errors] | None = None) -> None:
        """Recover the readers of the assigned partitions from the changelog, and read on at their next offsets.

        `failing` are surveys to be quarantined, by partition.
        """
        self.close()
        assignment = self._assignments
        wanted = sorted(partitions)
        counted = self.partitions
        if wanted and wanted[-1] >= counted:
            self._say_added(wanted[-1] + 1)
        tps = {partition: TP(self.topic, partition) for partition in wanted if partition < counted}
        records = await self.table.records(tps, lambda: assignment == self._assignments)
        begins = await self.watch.begins(tps.values())
        if assignment != self._assignments:
            return  # revoked in the meantime: the next assignment calls this again
        given = [(p, records[p], begins[tp], (failing or {}).get(p, NONE_FAIL)) for p, tp in tps.items()]
        made = await asyncio.gather(*(asyncio.to_thread(self.make, *about) for about in given))
        readers = dict(zip(tps, made, strict=True))
        readings = {partition: _reading(reader) for partition, reader in readers.items()}
        look, faults = await self.watch.faults(self.topic, readings)
        if assignment != self._assignments:
            return
        for partition in readers.keys() & look.views.keys():
            readers[partition].adopt(look.views[partition].topic)
        starts = {
            tps[p]: faults[p].read_on if p in faults else reader.next_offset - reader.mark.shift
            for p, reader in readers.items()
        }
        if not await self.app.batch_consumer.read_from(starts) or assignment != self._assignments:
            return
        for partition, reader in readers.items():
            tp, fault = tps[partition], faults.get(partition)
            if reader.missing and fault is None:
                log.error("records are missing", what=reader.missing)
            self._tasks[partition] = PartitionTask(tp, reader, self.table, self.writer, self._begin_again, fault)
        self._acknowledged = {}  # the group's offsets may be others than those of the state
        self.is_open = True
        log.info("reading", topic=self.topic, next_offsets={tp.partition: offset for tp, offset in starts.items()})

    def _begin_again(self, task: PartitionTask[R], errors: Errors) -> None:
        """Recover with these surveys quarantined: what is in memory, and not written, is of no use any more."""
        partitions, partition = list(self._tasks), task.tp.partition
        if self._tasks.get(partition) is not task:
            return  # it is given up already
        self.close()
        assignment = self._assignments

        async def recover() -> None:
            with fatal("recovering"):
                if assignment == self._assignments:
                    await self.open(partitions, {partition: errors})

        self.app.add_future(recover())

    def close(self) -> None:
        """Give up all partitions: they are revoked."""
        self._assignments += 1
        self.is_open = False
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()

    async def check_logs(self) -> None:
        """Look whether the logs are still those that were read, and the topic still has so many partitions."""
        assignment = self._assignments
        readings = {task.tp.partition: _reading(task.reader) for task in self if task.fault is None}
        look, faults = await self.watch.faults(self.topic, readings)
        if look.partitions in (0, self.partitions):
            self.topic_fault = None
        else:
            self._say_added(look.partitions)
        for task in self:
            if assignment == self._assignments and task.tp.partition in faults:
                task.halt(faults[task.tp.partition])

    def _say_added(self, found: int) -> None:
        """Note that the topic has more partitions than are counted, and say it once."""
        if self.topic_fault is None:
            about = {"topic": self.topic, "partitions": found, "counted": self.partitions}
            log.error("partitions were added", **about, hint=ADDED)
        self.topic_fault = LogFault.of_partitions(self.partitions)

    async def finish(self) -> None:
        """Write the last flushes before leaving the group."""
        tasks, self._tasks = list(self._tasks.values()), {}
        self.is_open = False
        try:
            await asyncio.wait_for(asyncio.gather(*(task.finish() for task in tasks)), LAST_FLUSH_SECONDS)
        except TimeoutError:
            log.warning("leaving without a last flush; what it would have written is counted again", topic=self.topic)

    async def consume(self, stream: Any) -> None:
        """The body of the agent. Faust's acknowledgements are off; ours follow what is written."""
        with fatal(f"reading {self.topic}"):
            await in_turns(stream.noack().events(), lambda event: event.message.partition, self._feed_all)

    async def _feed_all(self, event: Any) -> None:
        """Give the records of a fetch to the reader of their partition."""
        with fatal(f"reading {self.topic}"):
            for records in in_portions(event.value, PORTION_BYTES, PORTION_RECORDS):
                if event.message.generation_id == self.app.consumer_generation_id:
                    await self._feed(records)
                await asyncio.sleep(0)

    async def _feed(self, records: Sequence[EpochRecord]) -> None:
        """Give records of one partition to its reader, from its next offset on."""
        task = self._tasks.get(records[0].partition)
        if task is None or task.fault is not None:
            return
        wanted = [record for record in records if last_offset(record) >= task.next_offset]
        if not wanted:
            return
        task.has_gap = wanted[0].offset > task.next_offset
        if task.has_gap and task.attempts <= MAX_ATTEMPTS:
            return
        skipped = (record for record in wanted if isinstance(record, SkippedRecords))
        lacking = next((record for record in skipped if not task.reader.may_skip(task.skipped(record))), None)
        usable = wanted if lacking is None else wanted[: wanted.index(lacking)]
        if usable:
            try:
                write_now = await self.apply(task, usable)
            except Exception:
                if not task.reader.failing:
                    raise
                self._begin_again(task, task.reader.failing)
                return
            await task.note_read(sum(len(record.value or b"") + RECORD_COST for record in usable), write_now)
        if lacking is not None:
            what = f"offsets {lacking.offset} to {last_offset(lacking)} hold no record that can be read"
            task.halt(LogFault(FaultKind.GAP, what, lacking.offset))

    async def fetch_missing(self, idle: bool) -> None:
        """Fetch records again that are in the log and have not arrived, although nothing else is being read (`idle`).

        Faust may lose some when partitions are assigned, and may no longer fetch from a partition whose queue was full.
        A record that has not arrived after several attempts is missing from the log: then the reader is given the next
        one, which is an error.
        """
        for task in self:
            wanted = task.next_offset
            if task.fault is not None:
                continue
            if wanted != task.last_wanted:
                task.last_wanted, task.attempts = wanted, 0
            elif self.app.batch_consumer.end_of(task.tp) > wanted and (idle or task.has_gap):
                task.attempts += 1
                log.info("reading again", topic=self.topic, partition=task.tp.partition, offset=wanted)
                await self.app.batch_consumer.read_again(task.tp, wanted)

    async def acknowledge(self) -> None:
        """Move the group's offsets to what is written, for tools that show the lag."""
        offsets = {task.tp: task.acknowledged for task in self if task.fault is None}
        moved = {tp: offset for tp, offset in offsets.items() if offset > self._acknowledged.get(tp, -1)}
        if moved and not self.app.rebalancing:
            self._acknowledged |= moved
            await self.app.batch_consumer.commit_offsets(moved)


def _reading(reader: LogReader) -> Reading:
    return reader.mark, reader.next_offset


def in_portions(records: Sequence[EpochRecord], size: int, most: int) -> Iterator[Sequence[EpochRecord]]:
    """Records in portions of consecutive offsets, each of at most `size` bytes and `most` records, or a single one."""
    start, bytes_in_portion = 0, 0
    for index, record in enumerate(records):
        length = len(record.value or b"")
        full = bytes_in_portion + length > size or index - start == most
        if index > start and (full or record.offset != last_offset(records[index - 1]) + 1):
            yield records[start:index]
            start, bytes_in_portion = index, 0
        bytes_in_portion += length
    if records:
        yield records[start:]


class Counting(PartitionTasks[PartitionCounter]):
    """Gives reports and clock records to the counters of their partitions."""

    @property
    def partitions(self) -> int:
        return self.options.topics.partitions

    def make(self, partition: int, records: Mapping[bytes, bytes], log_start: int, failing: Errors) -> PartitionCounter:
        options = self.options
        return PartitionCounter(
            partition,
            options.topics.partitions,
            self.surveys.schemes.get,
            options.clock_key,
            records.items(),
            log_start,
            options.check_tokens,
            list(self.surveys.schemes),
            failing=failing,
        )

    async def apply(self, task: PartitionTask[PartitionCounter], received: Sequence[EpochRecord]) -> bool:
        """Count records. Returns whether to flush now: one of them closed a period."""
        shift = task.reader.mark.shift
        records = [
            task.skipped(record)
            if isinstance(record, SkippedRecords)
            else Record(record.offset + shift, header(record, CONTENT_TYPE_HEADER), record.value, record.leader_epoch)
            for record in received
        ]
        clocks = [place for place, one in enumerate(records) if isinstance(one, Record) and one.content_type == CLOCK]
        if clocks and not await self.watch.has_partitions(self.topic, self.partitions):
            task.halt(LogFault.of_partitions(self.partitions))
            records = records[: clocks[0]]  # reports may be in partitions that nobody counts
        closed, certain = False, False
        while records:
            for changes in task.reader.apply_all(records, certain):
                scheme = self.surveys.schemes.get(changes.survey)
                if scheme is None or scheme.presence is None:
                    task.outcomes.update(outcomes_of(changes))
                else:
                    task.is_private = True
                closed |= changes.closed_through is not None
            note_passed_over(task.reader, self.surveys.schemes.get)
            records = [record for record in records if last_of(record) >= task.reader.next_offset]
            if records:  # of a survey that was perhaps published before they were written
                await self.surveys.catch_up()
                certain = True
        return closed


class Merging(PartitionTasks[Merger]):
    """Gives partials to the merge of their surveys."""

    @property
    def partitions(self) -> int:
        return self.options.topics.merge_partitions

    def make(self, partition: int, records: Mapping[bytes, bytes], log_start: int, failing: Errors) -> Merger:
        partitions, keyring = self.options.topics.partitions, Keyring(self.options.presence_key)
        lookup, found = self.surveys.schemes.get, records.items()
        return Merger(partition, partitions, lookup, keyring, found, log_start, failing=failing)

    async def apply(self, task: PartitionTask[Merger], received: Sequence[EpochRecord]) -> bool:
        """Merge partials. Returns whether to flush now: one of them made a period final."""
        made: list[Period] = []
        certain = False
        for record in received:
            if isinstance(record, SkippedRecords):
                task.reader.skip(task.skipped(record))
                continue
            survey = (record.key or b"").decode()
            if not certain and survey not in self.surveys.schemes:  # the worker that counted it knew it
                await self.surveys.catch_up()
                certain = True
            scheme = self.surveys.schemes.get(survey)
            task.is_private |= scheme is not None and scheme.presence is not None
            offset = record.offset + task.reader.mark.shift
            made += task.reader.apply(offset, record.value or b"", record.leader_epoch, record.key or b"")
        note_passed_over(task.reader, self.surveys.schemes.get)
        note_finals(made)
        return bool(made)


def last_of(record: Record | Skipped) -> int:
    return record.last if isinstance(record, Skipped) else record.offset
