"""Finding the partitions that workers cannot read on, and letting them go on: what `hearsay recover` does.

The state of a partition is read from its changelog. An operator's acceptance is written there, under a key of its own;
every recovery applies it to a state that does not contain it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition

from protocols.errors import StateError
from servers.kafka_clients import connected
from servers.settings import KafkaSettings
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.counting.state import Position, accepted_key, position_key
from stream_app.faust_app.broker.changelogs import StateRecord, newest_records, write_state
from stream_app.faust_app.broker.log_watch import OPEN_SECONDS, RETRY_SECONDS, Reading, look_at
from stream_app.faust_app.overrides.batches import BatchLimits, SkippedRecords, account_for_all_offsets
from stream_app.faust_app.overrides.leader_epochs import EpochAdmin
from stream_app.kafka.topics import Mismatch, Topics, check
from stream_app.log.codec import of_this_release
from stream_app.log.marks import Acceptance, FaultKind, LogFault, LogView, Why
from stream_app.merging.merger import Merger
from stream_app.merging.state import MergePosition, merge_accepted_key, merged_key

FETCH_SECONDS = 5.0


@dataclass(frozen=True)
class StuckPartition:
    """A partition that is not read on: why, what its state knows of the log, and the log as it is now."""

    topic: str
    partition: int
    fault: LogFault
    reading: Reading
    view: LogView | None
    changelog: str
    key: bytes

    def accepted(self, lost: int) -> Acceptance:
        """Let it go on, with at most so many lost reports of each survey."""
        if self.view is None or self.fault.kind in (FaultKind.GONE, FaultKind.PARTITIONS):
            raise StateError(
                f"{self.topic}, partition {self.partition}: {self.fault.what}",
                "make the topic again first, with as many partitions as its changelog has",
            )
        return Acceptance.of(*self.reading, self.fault, self.view, lost)


@dataclass(frozen=True)
class _Table:
    """The names of one table: what it reads, where its state is, and the keys of its records."""

    topic: str
    partitions: int
    changelog: str
    position_key: Callable[[int], bytes]
    accepted_key: Callable[[int], bytes]
    decode: Callable[[bytes], Position | MergePosition]
    passed: frozenset[Why]
    """Why offsets may hold no record, without a fault."""


def stuck_partitions(kafka: KafkaSettings, topics: Topics) -> list[StuckPartition]:
    """The partitions that workers do not read on, in the state that they have written."""
    counting = _Table(
        topics.reports,
        topics.partitions,
        topics.counting_changelog,
        position_key,
        accepted_key,
        Position.decode,
        PartitionCounter.NOTHING_LACKS,
    )
    merging = _Table(
        topics.partials,
        topics.merge_partitions,
        topics.merging_changelog,
        merged_key,
        merge_accepted_key,
        MergePosition.decode,
        Merger.NOTHING_LACKS,
    )
    account_for_all_offsets(BatchLimits(kafka.max_batch_bytes, topics.reports))
    with connected(EpochAdmin, kafka, OPEN_SECONDS) as admin:
        return [stuck for table in (counting, merging) for stuck in _stuck(kafka, admin, table)]


def accept(kafka: KafkaSettings, topics: Topics, stuck: Iterable[StuckPartition], lost: int) -> None:
    """Let partitions go on when workers are started again. Refused while one is running."""
    records = [StateRecord(one.changelog, one.partition, one.key, one.accepted(lost).encode()) for one in stuck]
    write_state(kafka, topics, records)


def _stuck(kafka: KafkaSettings, admin: EpochAdmin, table: _Table) -> Iterator[StuckPartition]:
    with of_this_release(f"the state in {table.changelog}"):
        readings = _readings(kafka, table)
    look = look_at(admin, table.topic, readings)
    faults = look.faults(readings)
    if faults:
        time.sleep(RETRY_SECONDS)  # as in `LogWatch.faults`
        look = look_at(admin, table.topic, readings)
        faults = {partition: fault for partition, fault in look.faults(readings).items() if partition in faults}
    if look.partitions not in (0, table.partitions):
        faults = dict.fromkeys(readings, LogFault.of_partitions(table.partitions))
    starts = {p: next_offset - mark.shift for p, (mark, next_offset) in readings.items() if p not in faults}
    unread = {p: start for p, start in starts.items() if look.views[p].begin <= start < look.views[p].end}
    faults |= asyncio.run(_gaps(kafka, table, unread)) if unread else {}
    for partition, fault in sorted(faults.items()):
        view = look.views.get(partition)
        key = table.accepted_key(partition)
        yield StuckPartition(table.topic, partition, fault, readings[partition], view, table.changelog, key)


def _readings(kafka: KafkaSettings, table: _Table) -> dict[int, Reading]:
    """What the newest positions know of their logs, with what was accepted since."""
    newest = newest_records(kafka, table.changelog)
    readings = {}
    for partition in range(table.partitions):
        value = newest.get(table.position_key(partition))
        if value is None:
            continue  # nothing was counted
        position = table.decode(value)
        mark, accepted = position.mark, newest.get(table.accepted_key(partition))
        if accepted is not None and Acceptance.decode(accepted).mark.acceptances > mark.acceptances:
            mark = Acceptance.decode(accepted).mark
        readings[partition] = (mark, max(position.offset + 1, mark.floor))
    return readings


async def _gaps(kafka: KafkaSettings, table: _Table, starts: Mapping[int, int]) -> dict[int, LogFault]:
    """The partitions that workers do not read on at their next offset, as they lack a record there."""
    consumer = AIOKafkaConsumer(**kafka.client_options(), enable_auto_commit=False, auto_offset_reset="none")
    await consumer.start()
    faults: dict[int, LogFault] = {}
    try:
        tps = {partition: TopicPartition(table.topic, partition) for partition in starts}
        for partition, start in starts.items():
            consumer.assign([tps[partition]])
            consumer.seek(tps[partition], start)
            fetched = await consumer.getmany(timeout_ms=int(FETCH_SECONDS * 1000), max_records=1)
            for first in fetched.get(tps[partition], []):
                if isinstance(first, SkippedRecords) and first.why not in table.passed:
                    what = f"offsets {first.offset} to {first.last} hold no record that can be read"
                    faults[partition] = LogFault(FaultKind.GAP, what, first.offset)
    finally:
        await consumer.stop()
    return faults


READ_ON = "workers do not read it on, and no period of it is closed: run `hearsay recover`"


def check_cluster(kafka: KafkaSettings, topics: Topics) -> list[Mismatch]:
    """Every setting of the topics that differs from the required one, and every log that is not the one counted."""
    mismatches = check(kafka, topics)
    if any(mismatch.found == "missing" for mismatch in mismatches):
        return mismatches
    return mismatches + [
        Mismatch(
            stuck.topic,
            f"the log of partition {stuck.partition}",
            f"not the one that was counted ({stuck.fault.what})",
            "the one that its state contains",
            READ_ON,
        )
        for stuck in stuck_partitions(kafka, topics)
        if stuck.fault.kind is not FaultKind.PARTITIONS  # among the settings already
    ]
