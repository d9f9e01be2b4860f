"""What the counting agent does with a record of the reports topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aiokafka import ConsumerRecord
from faust.types import TP

from protocols.wire import HEADER
from stream_app.counting import PartitionCounter
from stream_app.faust_app.lanes import Lane
from stream_app.faust_app.metrics import note_changes
from stream_app.faust_app.options import WorkerOptions
from stream_app.faust_app.surveys import NotYetKnown, Surveys
from stream_app.judging import Record


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


def content_type(record: ConsumerRecord) -> str | None:
    """The header that says what a record is. It may be missing, or hold anything."""
    for name, value in record.headers:
        if name == HEADER and value is not None:
            return bytes(value).decode("utf-8", "replace")
    return None
