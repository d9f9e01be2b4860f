"""What `hearsay recover` finds and lets go on: partitions that workers cannot read on, and quarantined surveys.

The state of a partition is read from its changelog. An operator's decision is written there, under a key of its own;
every recovery applies it to a state that does not contain it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition

from protocols.errors import StateError
from servers.kafka_clients import connected
from servers.settings import KafkaSettings
from stream_app.faust_app.broker.changelogs import Changelog, StateRecord, changelogs, newest_records, write_state
from stream_app.faust_app.broker.log_watch import OPEN_SECONDS, Reading, find_faults
from stream_app.faust_app.overrides.batches import BatchLimits, SkippedRecords, account_for_all_offsets
from stream_app.faust_app.overrides.leader_epochs import EpochAdmin
from stream_app.kafka.topics import Mismatch, Topics, check
from stream_app.log.marks import Acceptance, FaultKind, LogFault, LogView
from stream_app.log.quarantines import Quarantine, Resumption

FETCH_SECONDS = 5.0


@dataclass(frozen=True)
class StuckPartition:
    """A partition that is not read on: why, what its state knows of the log, and the log as it is now."""

    topic: str
    partition: int
    fault: LogFault
    reading: Reading
    view: LogView | None
    changelog: Changelog

    def accepted(self, lost: int) -> Acceptance:
        """Let it go on, with at most so many lost reports of each survey."""
        if self.view is None or self.fault.kind in (FaultKind.GONE, FaultKind.PARTITIONS):
            raise StateError(
                f"{self.topic}, partition {self.partition}: {self.fault.what}",
                "make the topic again first, with as many partitions as its changelog has",
            )
        return Acceptance.of(*self.reading, self.fault, self.view, lost)


def stuck_partitions(kafka: KafkaSettings, topics: Topics) -> list[StuckPartition]:
    """The partitions that workers do not read on, in the state that they have written."""
    account_for_all_offsets(BatchLimits(kafka.max_batch_bytes, topics.reports))
    with connected(EpochAdmin, kafka, OPEN_SECONDS) as admin:
        return [stuck for changelog in changelogs(topics) for stuck in _stuck(kafka, admin, changelog)]


def accept(kafka: KafkaSettings, topics: Topics, stuck: Iterable[StuckPartition], lost: int) -> None:
    """Let partitions go on when workers are started again. Refused while one is running."""
    records = [one.changelog.record(one.partition, "accepted", value=one.accepted(lost).encode()) for one in stuck]
    write_state(kafka, topics, records)


def _stuck(kafka: KafkaSettings, admin: EpochAdmin, changelog: Changelog) -> Iterator[StuckPartition]:
    readings = _readings(kafka, changelog)
    look, faults = find_faults(admin, changelog.topic, readings)
    if look.partitions not in (0, changelog.partitions):
        faults = dict.fromkeys(readings, LogFault.of_partitions(changelog.partitions))
    starts = {p: next_offset - mark.shift for p, (mark, next_offset) in readings.items() if p not in faults}
    unread = {p: start for p, start in starts.items() if look.views[p].begin <= start < look.views[p].end}
    faults |= asyncio.run(_gaps(kafka, changelog, unread)) if unread else {}
    for partition, fault in sorted(faults.items()):
        view = look.views.get(partition)
        yield StuckPartition(changelog.topic, partition, fault, readings[partition], view, changelog)


def _readings(kafka: KafkaSettings, changelog: Changelog) -> dict[int, Reading]:
    """What the newest positions know of their logs, with what was accepted since."""
    newest = newest_records(kafka, changelog.name)
    readings = {}
    for partition, position in changelog.positions(newest):
        position.accept(newest.get(changelog.key(partition, "accepted")))
        readings[partition] = (position.mark, max(position.offset + 1, position.mark.floor))
    return readings


async def _gaps(kafka: KafkaSettings, changelog: Changelog, starts: Mapping[int, int]) -> dict[int, LogFault]:
    """The partitions that workers do not read on at their next offset, as they lack a record there."""
    consumer = AIOKafkaConsumer(**kafka.client_options(), enable_auto_commit=False, auto_offset_reset="none")
    await consumer.start()
    faults: dict[int, LogFault] = {}
    try:
        tps = {partition: TopicPartition(changelog.topic, partition) for partition in starts}
        for partition, start in starts.items():
            consumer.assign([tps[partition]])
            consumer.seek(tps[partition], start)
            fetched = await consumer.getmany(timeout_ms=int(FETCH_SECONDS * 1000), max_records=1)
            for first in fetched.get(tps[partition], []):
                if isinstance(first, SkippedRecords) and first.why not in changelog.reader.NOTHING_LACKS:
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


@dataclass(frozen=True)
class QuarantinedSurvey:
    """A survey that is quarantined in a partition of a topic. It goes on with `resumption`."""

    survey: str
    topic: str
    partition: int
    quarantine: Quarantine
    resumption: StateRecord


def quarantined_surveys(kafka: KafkaSettings, topics: Topics) -> list[QuarantinedSurvey]:
    """The surveys that are quarantined, in the state that workers have written; not those that go on at the start."""
    found: list[QuarantinedSurvey] = []
    for log in changelogs(topics):
        newest = newest_records(kafka, log.name)
        for partition, position in log.positions(newest):
            for survey, quarantine in list(position.quarantines.items()):
                position.resume(survey, newest.get(log.key(partition, "resumed", survey)))
                if position.is_quarantined(survey):
                    record = log.record(partition, "resumed", survey, value=Resumption(quarantine.times).encode())
                    found.append(QuarantinedSurvey(survey, log.topic, partition, quarantine, record))
    return found


def resume_surveys(kafka: KafkaSettings, topics: Topics, quarantines: Iterable[QuarantinedSurvey]) -> None:
    """Let surveys go on when workers are started again. Refused while one is running."""
    write_state(kafka, topics, [one.resumption for one in quarantines])
