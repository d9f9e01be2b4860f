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
from stream_app.kafka.reading import header
from stream_app.log.marks import LogFault, Skipped
from stream_app.log.recovery import Errors
from stream_app.merging.merger import Merger


class Counting(PartitionTasks[PartitionCounter]):
    """Gives reports and clock records to the counters of their partitions."""

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
        if clocks and not await self.watch.has_partitions(self.topic, self.options.topics.partitions):
            task.halt(LogFault.of_partitions(self.options.topics.partitions))
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
            if (
                not certain and (record.key or b"").decode() not in self.surveys.schemes
            ):  # the worker that counted it knew it
                await self.surveys.catch_up()
                certain = True
            scheme = self.surveys.schemes.get((record.key or b"").decode())
            task.is_private |= scheme is not None and scheme.presence is not None
            offset = record.offset + task.reader.mark.shift
            made += task.reader.apply(offset, record.value or b"", record.leader_epoch, record.key or b"")
        note_passed_over(task.reader, self.surveys.schemes.get)
        note_finals(made)
        return bool(made)


def last_of(record: Record | Skipped) -> int:
    return record.last if isinstance(record, Skipped) else record.offset
