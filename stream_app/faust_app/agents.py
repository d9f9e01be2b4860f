"""What the agents do with records: count reports, merge partials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aiokafka import ConsumerRecord
from faust.types import TP

from protocols.randomness import Keyring
from protocols.wire import CONTENT_TYPE_HEADER
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.counting.state import Period
from stream_app.faust_app.broker.surveys import Surveys
from stream_app.faust_app.monitoring.metrics import note_changes, note_finals
from stream_app.faust_app.options import WorkerOptions
from stream_app.faust_app.partition_tasks import PartitionTask
from stream_app.merging.merger import Merger


class Counting:
    """Gives reports and clock records to the counters of their partitions."""

    def __init__(self, options: WorkerOptions, surveys: Surveys) -> None:
        self._options = options
        self._surveys = surveys

    def make(self, partition: int, records: Mapping[bytes, bytes], log_start: int) -> PartitionCounter:
        """The counter of a partition, recovered from its state records."""
        options = self._options
        return PartitionCounter(
            partition,
            options.topics.partitions,
            self._surveys.lookup,
            options.clock_key,
            records.items(),
            log_start,
            options.check_tokens,
        )

    async def apply(
        self, task: PartitionTask[PartitionCounter], received: Sequence[ConsumerRecord], end: Callable[[TP], int]
    ) -> bool:
        """Count records. Returns whether one of them closed a period, which the merge waits for."""
        records = [Record(record.offset, content_type(record), record.value) for record in received]
        closed = False
        while records:
            applied = task.reader.apply_all(records, self._surveys.certain_before(task.tp))
            for changes in applied.changes:
                scheme = self._surveys.lookup(changes.survey)
                if scheme is None or scheme.presence is None:
                    note_changes(changes)
                closed |= changes.closed_through is not None
            if applied.postponed is not None:
                await self._surveys.make_certain(task.tp, applied.postponed.offset, end(task.tp))
            records = [record for record in records if record.offset >= task.reader.next_offset]
        return closed


class Merging:
    """Gives partials to the merge of their surveys."""

    def __init__(self, options: WorkerOptions, surveys: Surveys) -> None:
        self._options = options
        self._surveys = surveys

    def make(self, owner: int, records: Mapping[bytes, bytes], log_start: int) -> Merger:
        """The merge of a partition of the partials topic, recovered from its state records."""
        options = self._options
        return Merger(
            owner,
            options.topics.partitions,
            self._surveys.lookup,
            Keyring(options.presence_key),
            records.items(),
            log_start,
        )

    async def apply(
        self, task: PartitionTask[Merger], records: Sequence[ConsumerRecord], end: Callable[[TP], int]
    ) -> bool:
        """Merge partials. Returns whether one of them made a period final."""
        made: list[Period] = []
        for record in records:
            if (record.key or b"").decode() not in self._surveys:  # the worker that counted it knew it
                await self._surveys.make_certain(task.tp, record.offset, end(task.tp))
            made += task.reader.apply(record.offset, record.value or b"")
        note_finals(made)
        return bool(made)


def content_type(record: ConsumerRecord) -> str | None:
    """The content type in a record's headers: None if it is missing, else any text."""
    for name, value in record.headers:
        if name == CONTENT_TYPE_HEADER and value is not None:
            return bytes(value).decode("utf-8", "replace")
    return None
