"""Reading the state that workers have written, and adding what an operator has decided.

Each decision is a record under a key of its own, applied by recovery. So no worker may be running while it is written:
it would go on with the state that it has in memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from kafka import KafkaProducer
from kafka.errors import KafkaError

from protocols.errors import ServerUnavailable, StateError
from servers.kafka_clients import connected, failure, opened
from servers.settings import NO_KAFKA, KafkaSettings
from stream_app.faust_app.broker.log_watch import OPEN_SECONDS, RETRY_SECONDS
from stream_app.faust_app.overrides.leader_epochs import EpochAdmin
from stream_app.kafka.reading import read_topic
from stream_app.kafka.topics import Topics

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
