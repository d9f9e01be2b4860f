"""What the agents do with records: reports are counted, partials are merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aiokafka import ConsumerRecord
from faust.types import TP

from protocols.randomness import Keyring
from protocols.wire import CONTENT_TYPE_HEADER
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.counting.state import Period
from stream_app.faust_app.broker.surveys import NotYetKnown, Surveys
from stream_app.faust_app.monitoring.metrics import note_changes, note_finals
from stream_app.faust_app.options import WorkerOptions
from stream_app.faust_app.partition_tasks import Lane
from stream_app.merging.merger import Merger


class Counting:
    """Feeds reports and clock records to the counters of their partitions."""

    def __init__(self, options: WorkerOptions, surveys: Surveys) -> None:
        self._options = options
        self._surveys = surveys

    def make(self, partition: int, records: Mapping[bytes, bytes], log_start: int) -> PartitionCounter:
        """The counter of a partition, as the changelog has it."""
        options = self._options
        with self._surveys.certainly():
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
        self, lane: Lane[PartitionCounter], received: Sequence[ConsumerRecord], end: Callable[[TP], int]
    ) -> bool:
        """Count records; whether one closed something, which the merge waits for."""
        records = [Record(record.offset, content_type(record), record.value) for record in received]
        closed = False
        while records:
            try:
                told = lane.machine.apply_all(records)
            except NotYetKnown:
                await self._surveys.settle(lane.tp, records[0].offset, end(lane.tp))
                with self._surveys.certainly():
                    told = [lane.machine.apply(records[0])]
            for changes in told:
                note_changes(changes)
                closed |= changes.closed_through is not None
            records = [record for record in records if record.offset >= lane.machine.next_offset]
        return closed


class Merging:
    """Feeds partials to the merge of their surveys."""

    def __init__(self, options: WorkerOptions, surveys: Surveys) -> None:
        self._options = options
        self._surveys = surveys

    def make(self, owner: int, records: Mapping[bytes, bytes], log_start: int) -> Merger:
        """The merge of a partition of the partials topic, as the changelog has it."""
        options = self._options
        with self._surveys.certainly():
            return Merger(
                owner,
                options.topics.partitions,
                self._surveys.lookup,
                Keyring(options.presence_key),
                records.items(),
                log_start,
            )

    async def apply(self, lane: Lane[Merger], records: Sequence[ConsumerRecord], end: Callable[[TP], int]) -> bool:
        """Merge partials; whether one made a period final."""
        made: list[Period] = []
        for record in records:
            if (record.key or b"").decode() not in self._surveys:  # another worker knew it already
                await self._surveys.settle(lane.tp, record.offset, end(lane.tp))
            with self._surveys.certainly():
                made += lane.machine.apply(record.offset, record.value or b"")
        note_finals(made)
        return bool(made)


def content_type(record: ConsumerRecord) -> str | None:
    """The header that says what a record is. It may be missing, or hold anything."""
    for name, value in record.headers:
        if name == CONTENT_TYPE_HEADER and value is not None:
            return bytes(value).decode("utf-8", "replace")
    return None
