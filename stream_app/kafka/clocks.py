"""The clock of the brokers, and whether the one of this machine agrees with it.

A worker with a clock that is fast closes periods early, and brokers refuse its records (InvalidTimestampError). With
one that is slow, what it writes is as old as its clock says, and retention deletes it.

Kafka has no request for the time. But a broker that refuses a record because it is too far in the future says until
when it takes records: its own time, and a limit. So a record is sent that it must refuse. If it takes it all the same,
that changes nothing: it deletes a state record that there is not. Then this clock is slow, or the limit is another one
than Kafka's, and the newest report says how late it is at least.
"""

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.errors import InvalidTimestampError, KafkaError

from protocols.errors import ClockError
from servers.kafka_clients import connected
from servers.settings import KafkaSettings
from stream_app.kafka.topics import ANSWER_SECONDS, Topics

LIMIT = "message.timestamp.after.max.ms"
USUAL_LIMIT_MS = 60 * 60 * 1000
"""How far in the future a broker takes records, unless its settings say otherwise."""
BEYOND_MS = 60 * 60 * 1000
"""How far beyond that the record is. If it were further, and were taken all the same by a broker with another limit,
the changelog would not be compacted until that time has come."""
WARNED_SECONDS = 5.0
REFUSED_SECONDS = 300.0
"""What NTP keeps is some milliseconds. So much is no delay, but a clock that nobody sets."""
ONCE: dict[str, Any] = {"acks": "all", "enable_idempotence": False, "retries": 0}
NOBODY = b"clock"
"""The key of a state record that there is not."""
RANGE = re.compile(r"within \[-?\d+, (\d+)\]")

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Clocks:
    """Two clocks at one moment, in seconds since 1970. With `at_least`, that of the broker may be later than this."""

    here: float
    broker: float
    at_least: bool = False

    @property
    def difference(self) -> float:
        """By how much the clock of this machine is ahead; negative if it is behind."""
        return self.here - self.broker

    def __str__(self) -> str:
        least = "at least " if self.at_least else ""
        return (
            f"the clock of this machine says {shown(self.here)} and that of the broker {least}{shown(self.broker)}, "
            f"a difference of {least}{abs(self.difference):,.0f} s"
        )


def read_clocks(kafka: KafkaSettings, topics: Topics) -> Clocks | None:
    """Both clocks; None where nothing tells the time of the broker."""
    known_limit = _limit(kafka, topics)
    limit = USUAL_LIMIT_MS if known_limit is None else min(known_limit, USUAL_LIMIT_MS)
    told = "Write the changelogs", "did not say its time"
    with _quiet(), connected(KafkaProducer, kafka, ANSWER_SECONDS, *told, **ONCE) as producer:
        producer.partitions_for(topics.counting_changelog)  # what is asked first takes longer
        before = _milliseconds()
        too_late = before + limit + BEYOND_MS
        about = {"key": NOBODY, "partition": 0, "timestamp_ms": too_late}
        try:
            taken = producer.send(topics.counting_changelog, None, **about).get(timeout=ANSWER_SECONDS)
        except InvalidTimestampError as error:
            found = RANGE.search(str(error))
            here = (before + _milliseconds()) / 2
            latest = known_limit if known_limit is not None else USUAL_LIMIT_MS
            return None if found is None else Clocks(here / 1000, (int(found[1]) - latest) / 1000)
    if taken.timestamp != too_late:  # a topic with LogAppendTime answers with the time
        return Clocks(before / 1000, taken.timestamp / 1000)
    earliest = [_newest(kafka, topics)]
    if known_limit == limit:
        earliest.append(too_late - limit)
    bound = Clocks(before / 1000, max(earliest) / 1000, at_least=True)
    return bound if bound.difference < 0 else None


def check_clocks(kafka: KafkaSettings, topics: Topics) -> None:
    """Raise ClockError if the clocks of this machine and of the broker differ by minutes; warn if by seconds."""
    clocks = read_clocks(kafka, topics)
    if clocks is None:
        log.info("the broker does not say its time; the clock of this machine is not compared with it")
        return
    if abs(clocks.difference) >= REFUSED_SECONDS:
        raise wrong_clock(str(clocks))
    if abs(clocks.difference) >= WARNED_SECONDS:
        log.warning("the clocks differ; synchronise both (NTP)", here=shown(clocks.here), broker=shown(clocks.broker))


def wrong_clock(what: str) -> ClockError:
    return ClockError(
        what,
        "set the wrong one right (NTP), then start the worker again: nothing is lost; read "
        "docs/runbooks/HearsayWorkerDown.md",
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep kafka-python from warning of the record that is meant to be refused."""
    logger = logging.getLogger("kafka.producer")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _limit(kafka: KafkaSettings, topics: Topics) -> int | None:
    """How far in the future the broker takes state records, in milliseconds; None if this user may not know it."""
    resource = ConfigResource(ConfigResourceType.TOPIC, topics.counting_changelog)
    with connected(KafkaAdminClient, kafka, ANSWER_SECONDS) as admin, suppress(KafkaError, KeyError):
        described = admin.describe_configs([resource], config_filter="all")["topic"]
        return int(described[topics.counting_changelog][LIMIT]["value"])
    return None


def _newest(kafka: KafkaSettings, topics: Topics) -> int:
    """When the broker took the newest of the reports, in milliseconds by its clock; -1 if there is none."""
    partitions = [TopicPartition(topics.reports, number) for number in range(topics.partitions)]
    with connected(KafkaAdminClient, kafka, ANSWER_SECONDS) as admin:
        found = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.MAX_TIMESTAMP))
    newest: int = max(one.timestamp for one in found.values())
    return newest


def _milliseconds() -> int:
    return int(time.time() * 1000)


def shown(seconds: float) -> str:
    """A moment as text.

    >>> shown(1_767_225_600)
    '2026-01-01 00:00:00 UTC'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
