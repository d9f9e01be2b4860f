"""Reading the state that workers have written, and adding what an operator has decided.

Each decision is a record under a key of its own, applied by recovery. So no worker may be running while it is written:
it would go on with the state that it has in memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka import KafkaProducer
from kafka.errors import KafkaError

from protocols.errors import ServerUnavailable, StateError
from servers.kafka_clients import connected, failure, opened
from servers.settings import NO_KAFKA, KafkaSettings
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.faust_app.broker.log_watch import OPEN_SECONDS, RETRY_SECONDS
from stream_app.faust_app.overrides.leader_epochs import EpochAdmin
from stream_app.kafka.reading import read_topic
from stream_app.kafka.topics import Topics
from stream_app.log.codec import of_this_release
from stream_app.log.flushes import state_key
from stream_app.log.log_reader import LogReader
from stream_app.log.recovery import LogPosition
from stream_app.merging.merger import Merger

ANSWERS = 10
"""How often to ask for the state of a group: a cluster that has just started finds no coordinator for some seconds."""
WRITE_SECONDS = 30.0


@dataclass(frozen=True)
class StateRecord:
    """A record for one partition of a changelog."""

    changelog: str
    partition: int
    key: bytes
    value: bytes


@dataclass(frozen=True)
class Changelog:
    """Where the state of one kind of log readers is, and which topic they read."""

    name: str
    topic: str
    partitions: int
    reader: type[LogReader]

    def positions(self, newest: dict[bytes, bytes]) -> Iterator[tuple[int, LogPosition]]:
        """The positions by partition; none of a partition of which nothing was read."""
        with of_this_release(f"the state in {self.name}"):
            for partition in range(self.partitions):
                value = newest.get(self.key(partition, "position"))
                if value is not None:
                    yield partition, self.reader.POSITION.decode(value)

    def key(self, partition: int, kind: str, *survey: str) -> bytes:
        return state_key(self.reader.STATE, partition, kind, *survey)

    def record(self, partition: int, kind: str, *survey: str, value: bytes) -> StateRecord:
        return StateRecord(self.name, partition, self.key(partition, kind, *survey), value)


def changelogs(topics: Topics) -> tuple[Changelog, Changelog]:
    return (
        Changelog(topics.counting_changelog, topics.reports, topics.partitions, PartitionCounter),
        Changelog(topics.merging_changelog, topics.partials, topics.merge_partitions, Merger),
    )


def newest_records(kafka: KafkaSettings, changelog: str) -> dict[bytes, bytes]:
    """The newest record of every key, from all partitions; without those that were deleted."""
    newest = {record.key: record.value for record in read_topic(kafka, changelog)}
    return {key: value for key, value in newest.items() if value is not None}


def write_state(kafka: KafkaSettings, topics: Topics, records: Iterable[StateRecord]) -> None:
    """Add records to changelogs, confirmed. Refused while a worker is running."""
    with connected(EpochAdmin, kafka, OPEN_SECONDS) as admin:
        members = _members(admin, topics.prefix)
    if members:
        raise StateError(
            f"{members} of the workers of group {topics.prefix!r} are running, or were until some seconds ago",
            "stop all workers first, and start them again afterwards",
        )
    try:
        producer = opened(KafkaProducer, kafka, OPEN_SECONDS, acks="all", enable_idempotence=True)
        try:
            for one in records:
                sent = producer.send(one.changelog, one.value, key=one.key, partition=one.partition)
                sent.get(timeout=WRITE_SECONDS)
        finally:
            producer.close()
    except KafkaError as error:
        raise failure(kafka, error, "Write the changelogs", "did not take the state") from error


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
