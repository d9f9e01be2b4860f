"""What the agents do with records: count reports, merge partials."""

from collections.abc import Mapping, Sequence

from protocols.randomness import Keyring
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.counting.state import Period
from stream_app.faust_app.monitoring import note_finals, note_passed_over, outcomes_of
from stream_app.faust_app.overrides.batches import EpochRecord, SkippedRecords
from stream_app.faust_app.partitions.task import PartitionTask
from stream_app.faust_app.partitions.tasks import PartitionTasks
from stream_app.log.marks import LogFault, Skipped
from stream_app.merging.merger import Merger


class Counting(PartitionTasks[PartitionCounter]):
    """Gives reports and clock records to the counters of their partitions."""

    def make(self, partition: int, records: Mapping[bytes, bytes], log_start: int) -> PartitionCounter:
        options = self._options
        return PartitionCounter(
            partition,
            options.topics.partitions,
            self._surveys.lookup,
            options.clock_key,
            records.items(),
            log_start,
            options.check_tokens,
            [survey.id for survey in self._surveys],
        )

    async def apply(self, task: PartitionTask[PartitionCounter], received: Sequence[EpochRecord]) -> bool:
        """Count records. Returns whether to flush now: one of them closed a period."""
        shift = task.reader.mark.shift
        records = [
            task.skipped(record)
            if isinstance(record, SkippedRecords)
            else Record(record.offset + shift, content_type(record), record.value, record.leader_epoch)
            for record in received
        ]
        clocks = [place for place, one in enumerate(records) if isinstance(one, Record) and one.content_type == CLOCK]
        if clocks and not await self._may_close(task, received[clocks[-1]].offset):
            records = records[: clocks[0]]
        closed = False
        while records:
            applied = task.reader.apply_all(records, self._surveys.certain_before(task.tp))
            for changes in applied.changes:
                scheme = self._surveys.lookup(changes.survey)
                if scheme is None or scheme.presence is None:
                    task.outcomes.update(outcomes_of(changes))
                else:
                    task.is_private = True
                closed |= changes.closed_through is not None
            note_passed_over(task.reader, self._surveys.lookup)
            if applied.postponed is not None:
                known_end = self.end(task.tp) + task.reader.mark.shift
                await self._surveys.make_certain(task.tp, applied.postponed, known_end)
            records = [record for record in records if last_of(record) >= task.reader.next_offset]
        return closed

    async def _may_close(self, task: PartitionTask[PartitionCounter], offset: int) -> bool:
        """Whether a clock record may close periods: not if reports may be in partitions that nobody counts."""
        wanted = self._options.topics.partitions
        if await self._watch.has_partitions(wanted, task.tp, offset, self.end(task.tp)):
            return True
        task.halt(LogFault.of_partitions(wanted))
        return False


class Merging(PartitionTasks[Merger]):
    """Gives partials to the merge of their surveys."""

    def make(self, partition: int, records: Mapping[bytes, bytes], log_start: int) -> Merger:
        options = self._options
        keyring = Keyring(options.presence_key)
        return Merger(partition, options.topics.partitions, self._surveys.lookup, keyring, records.items(), log_start)

    async def apply(self, task: PartitionTask[Merger], received: Sequence[EpochRecord]) -> bool:
        """Merge partials. Returns whether to flush now: one of them made a period final."""
        made: list[Period] = []
        for record in received:
            if isinstance(record, SkippedRecords):
                task.reader.skip(task.skipped(record))
                continue
            if (record.key or b"").decode() not in self._surveys:  # the worker that counted it knew it
                await self._surveys.make_certain(task.tp, record.offset, self.end(task.tp))
            scheme = self._surveys.lookup((record.key or b"").decode())
            task.is_private |= scheme is not None and scheme.presence is not None
            offset = record.offset + task.reader.mark.shift
            made += task.reader.apply(offset, record.value or b"", record.leader_epoch, record.key or b"")
        note_passed_over(task.reader, self._surveys.lookup)
        note_finals(made)
        return bool(made)


def last_of(record: Record | Skipped) -> int:
    return record.last if isinstance(record, Skipped) else record.offset


def content_type(record: EpochRecord) -> str | None:
    """The content type in a record's headers: None if it is missing, else any text."""
    for name, value in record.headers:
        if name == CONTENT_TYPE_HEADER and value is not None:
            return bytes(value).decode("utf-8", "replace")
    return None
