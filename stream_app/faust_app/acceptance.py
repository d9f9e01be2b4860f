"""What `hearsay recover` finds and lets go on: partitions that workers cannot read on, and quarantined surveys.

The state of a partition is read from its changelog. An operator's decision is written there, under a key of its own;
every recovery applies it to a state that does not contain it. So no worker may be running while it is written: it would
go on with the state that it has in memory.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition
from kafka import KafkaProducer
from kafka.errors import KafkaError

from protocols.errors import ServerUnavailable, StateError
from servers.kafka_clients import DURABLE, connected
from servers.settings import NO_KAFKA, KafkaSettings
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.counting.state import partition_of_key
from stream_app.faust_app.broker import RETRY_SECONDS, Reading, find_faults
from stream_app.faust_app.overrides.batches import BatchLimits, SkippedRecords, account_for_all_offsets
from stream_app.faust_app.overrides.leader_epochs import EpochAdmin
from stream_app.kafka.reading import read_topic
from stream_app.kafka.topics import ANSWER_SECONDS, Mismatch, Topics, check
from stream_app.log.codec import of_this_release
from stream_app.log.flushes import Write, state_key
from stream_app.log.log_reader import LogReader
from stream_app.log.marks import Acceptance, FaultKind, LogFault, LogView
from stream_app.log.recovery import LogPosition, Quarantine, resumption
from stream_app.merging.merger import Merger

ANSWERS = 10
"""How often to ask for the state of a group: a cluster that has just started finds no coordinator for some seconds."""
WRITE_SECONDS = 30.0
FETCH_SECONDS = 5.0
StateRecord = tuple[str, Write]  # the name of a changelog, and a record for it


@dataclass(frozen=True)
class Changelog:
    """Where the state of one kind of log readers is, and which topic they read."""

    name: str
    topic: str
    partitions: int
    reader: type[LogReader]

    def positions(self, kafka: KafkaSettings) -> Iterator[tuple[int, LogPosition]]:
        """The newest positions by partition, with what operators have let go on since.

        There is none of a partition of which nothing was read.
        """
        newest = {record.key: record.value for record in read_topic(kafka, self.name)}
        with of_this_release(f"the state in {self.name}"):
            for partition in range(self.partitions):
                value = newest.get(self.key(partition, "position"))
                if value is not None:
                    position = self.reader.POSITION.decode(value)
                    position.accept(newest.get(self.key(partition, "accepted")))
                    for survey in list(position.quarantines):
                        position.resume(survey, newest.get(self.key(partition, "resumed", survey)))
                    yield partition, position

    def key(self, partition: int, kind: str, *survey: str) -> bytes:
        return state_key(self.reader.STATE, partition, kind, *survey)


def changelogs(topics: Topics) -> tuple[Changelog, Changelog]:
    return (
        Changelog(topics.counting_changelog, topics.reports, topics.partitions, PartitionCounter),
        Changelog(topics.merging_changelog, topics.partials, topics.merge_partitions, Merger),
    )


def write_state(kafka: KafkaSettings, topics: Topics, records: Iterable[StateRecord]) -> None:
    """Let partitions and surveys go on by these records when workers are started. Refused while one is running."""
    with connected(EpochAdmin, kafka, ANSWER_SECONDS) as admin:
        members = _members(admin, topics.prefix)
    if members:
        raise StateError(
            f"{members} of the workers of group {topics.prefix!r} are running, or were until some seconds ago",
            "stop all workers first, and start them again afterwards",
        )
    told = "Write the changelogs", "did not take the state"
    with connected(KafkaProducer, kafka, ANSWER_SECONDS, *told, **DURABLE) as producer:
        for changelog, write in records:
            sent = producer.send(changelog, write.value, key=write.key, partition=partition_of_key(write.key))
            sent.get(timeout=WRITE_SECONDS)


def _members(admin: EpochAdmin, group: str) -> int:
    """How many members a consumer group has."""
    for _ in range(ANSWERS):
        try:
            found = admin.describe_groups([group])
        except KafkaError as error:
            if not error.retriable:
                raise
            time.sleep(RETRY_SECONDS)
            continue
        return len(found[group]["members"])
    raise ServerUnavailable(f"the cluster does not say whether workers of group {group!r} are running", NO_KAFKA)


@dataclass(frozen=True)
class StuckPartition:
    """A partition that is not read on: why, what its state knows of the log, and the log as it is now."""

    topic: str
    partition: int
    fault: LogFault
    reading: Reading
    view: LogView | None
    changelog: Changelog

    def accepted(self, lost: int) -> StateRecord:
        """The record by which it goes on, with at most so many lost reports of each survey."""
        if self.view is None or self.fault.kind in (FaultKind.GONE, FaultKind.PARTITIONS):
            raise StateError(
                f"{self.topic}, partition {self.partition}: {self.fault.what}",
                "make the topic again first, with as many partitions as its changelog has",
            )
        value = Acceptance.of(*self.reading, self.fault, self.view, lost).encode()
        return self.changelog.name, Write(self.changelog.key(self.partition, "accepted"), value)


def stuck_partitions(kafka: KafkaSettings, topics: Topics) -> list[StuckPartition]:
    """The partitions that workers do not read on, in the state that they have written."""
    account_for_all_offsets(BatchLimits(kafka.max_batch_bytes, topics.reports))
    with connected(EpochAdmin, kafka, ANSWER_SECONDS) as admin:
        return [stuck for changelog in changelogs(topics) for stuck in _stuck(kafka, admin, changelog)]


def _stuck(kafka: KafkaSettings, admin: EpochAdmin, changelog: Changelog) -> Iterator[StuckPartition]:
    positions = changelog.positions(kafka)
    readings = {p: (position.mark, max(position.offset + 1, position.mark.floor)) for p, position in positions}
    look, faults = find_faults(admin, changelog.topic, readings)
    if look.partitions not in (0, changelog.partitions):
        faults = dict.fromkeys(readings, LogFault.of_partitions(changelog.partitions))
    starts = {p: next_offset - mark.shift for p, (mark, next_offset) in readings.items() if p not in faults}
    unread = {p: start for p, start in starts.items() if look.views[p].begin <= start < look.views[p].end}
    faults |= asyncio.run(_gaps(kafka, changelog, unread)) if unread else {}
    for partition, fault in sorted(faults.items()):
        view = look.views.get(partition)
        yield StuckPartition(changelog.topic, partition, fault, readings[partition], view, changelog)


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
        for partition, position in log.positions(kafka):
            for survey in filter(position.is_quarantined, position.quarantines):
                quarantine = position.quarantines[survey]
                write = Write(log.key(partition, "resumed", survey), resumption(quarantine.times))
                found.append(QuarantinedSurvey(survey, log.topic, partition, quarantine, (log.name, write)))
    return found
