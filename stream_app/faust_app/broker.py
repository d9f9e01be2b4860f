"""What a worker asks the brokers: about its logs, and before it counts for its state and the surveys.

About logs: where they begin and end, whether each is still the one that the state contains, and whether its topic has
grown partitions. kafka-python's admin client is asked, in a thread: aiokafka knows neither the ids of topics nor leader
epochs. It has a connection of its own: a broker answers the requests of a connection in order, and holds back a fetch
while there are no records.

The state is in changelogs, which are its store. They are read to their end, and so is the registry of surveys.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.errors import KafkaError as AIOKafkaError
from aiokafka.errors import KafkaTimeoutError
from faust.types import TP
from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from protocols.errors import LogError, ServerUnavailable, StateError
from servers.kafka_clients import opened
from servers.settings import KafkaSettings
from stream_app.faust_app.crash import fatal
from stream_app.faust_app.overrides.batches import SkippedRecords
from stream_app.faust_app.overrides.leader_epochs import EpochAdmin
from stream_app.kafka.registry import Registry
from stream_app.kafka.topics import ANSWER_SECONDS
from stream_app.log.codec import RECORD_BYTES
from stream_app.log.marks import NO_EPOCH, FaultKind, LogFault, LogView, Mark, Why, compare

RETRY_SECONDS = 1.0
"""How long to wait before asking again, where nobody answers; and before a fault that was found is looked for again."""
LONGEST_RETRY_SECONDS = 8.0
"""Each pause is twice as long as the one before, up to this."""
READ_MORE = "read in docs/operations.md what to do about a log that cannot be read on"
Reading = tuple[Mark, int]  # what a state knows of its log, and its next offset

POLL_SECONDS = 1.0
"""How long to wait for records before asking whether the partitions are still ours."""
FOLLOW_SECONDS = 1.0
UNREADABLE = (Why.TOO_LARGE, Why.UNDECODABLE)  # batches with records; others lack them, as in a compacted topic

T = TypeVar("T")
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Look:
    """A topic as it is now: its id ("" if there is no such topic), how many partitions it has, the logs asked for."""

    topic: str = ""
    partitions: int = 0
    views: Mapping[int, LogView] = field(default_factory=dict)

    def faults(self, readings: Mapping[int, Reading]) -> dict[int, LogFault]:
        """What is wrong with the logs, by partition."""
        gone = LogFault(FaultKind.GONE, "there is no such topic any more")
        found = {
            partition: compare(*reading, self.views[partition]) if partition in self.views else gone
            for partition, reading in readings.items()
        }
        return {partition: fault for partition, fault in found.items() if fault is not None}


def look_at(admin: EpochAdmin, topic: str, readings: Mapping[int, Reading]) -> Look:
    """Ask about the logs of some partitions. What was read must be noted before this is called."""
    (described,) = admin.describe_topics([topic])
    if described["error_code"] == UnknownTopicOrPartitionError.errno:
        return Look()
    id, partitions = str(described["topic_id"]), len(described["partitions"])
    tps = {partition: TopicPartition(topic, partition) for partition in readings if partition < partitions}
    epochs = {tp: readings[partition][0].epoch for partition, tp in tps.items()}
    try:
        begins = admin.list_partition_offsets(dict.fromkeys(tps.values(), OffsetSpec.EARLIEST)) if tps else {}
        ends = admin.list_partition_offsets(dict.fromkeys(tps.values(), OffsetSpec.LATEST)) if tps else {}
        epoch_ends = admin.epoch_ends({tp: epoch for tp, epoch in epochs.items() if epoch != NO_EPOCH})
    except UnknownTopicOrPartitionError:
        return Look()
    views = {n: LogView(id, begins[tp].offset, ends[tp].offset, epoch_ends.get(tp)) for n, tp in tps.items()}
    return Look(id, partitions, views)


def find_faults(admin: EpochAdmin, topic: str, readings: Mapping[int, Reading]) -> tuple[Look, dict[int, LogFault]]:
    """What is wrong with logs, if it is found twice: an election may show an end too early for a moment."""
    look = look_at(admin, topic, readings)
    faults = look.faults(readings)
    if faults or not look.topic:
        time.sleep(RETRY_SECONDS)
        look = look_at(admin, topic, readings)
        faults = {partition: fault for partition, fault in look.faults(readings).items() if partition in faults}
    return look, faults


def offsets_of(admin: EpochAdmin, tps: Iterable[TP], spec: OffsetSpec) -> dict[TP, int]:
    wanted = {TopicPartition(*tp): spec for tp in tps}
    found = admin.list_partition_offsets(wanted) if wanted else {}
    return {TP(*tp): at.offset for tp, at in found.items()}


class LogWatch:
    """Looks at the logs of a cluster, and waits while it is unavailable."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._admin: EpochAdmin | None = None
        self._asking = asyncio.Lock()
        self._ids: dict[str, str] = {}  # of topics, when they were first seen

    async def begins(self, tps: Iterable[TP]) -> dict[TP, int]:
        """The first offset that each partition still has."""
        return await self._asked(offsets_of, tps, OffsetSpec.EARLIEST)

    async def ends(self, tps: Iterable[TP]) -> dict[TP, int]:
        """The offset that the next record of each partition will have."""
        return await self._asked(offsets_of, tps, OffsetSpec.LATEST)

    async def faults(self, topic: str, readings: Mapping[int, Reading]) -> tuple[Look, dict[int, LogFault]]:
        """What is wrong with the logs of a topic.

        Raises LogError if it is no longer the topic that was first seen under its name, or is gone. The process ends
        with it: aiokafka may not notice for minutes, or asks for a topic that is gone thousands of times a second. When
        the worker is started again, the topic is compared with the state.
        """
        look, faults = await self._asked(find_faults, topic, readings)
        first = self._ids.setdefault(topic, look.topic) if look.topic else self._ids.get(topic, "")
        if look.topic != first:
            what = "was deleted and made again" if look.topic else "was deleted"
            raise LogError(f"topic {topic} {what}", READ_MORE)
        return look, faults

    async def has_partitions(self, topic: str, wanted: int) -> bool:
        """Whether a topic has so many partitions."""
        return (await self._asked(look_at, topic, {})).partitions == wanted

    async def _asked(self, ask: Callable[..., T], *about: Any) -> T:
        """The answer to a question, in a thread of its own. Others are asked while this one waits to be repeated.

        It is said that it waits whenever the pause grows, or the reason is another one.
        """
        pause, said = RETRY_SECONDS, ""
        while True:
            async with self._asking:
                try:
                    if self._admin is None:
                        self._admin = await asyncio.to_thread(opened, EpochAdmin, self._kafka, ANSWER_SECONDS)
                    return await asyncio.to_thread(ask, self._admin, *about)
                except (KafkaError, ServerUnavailable) as error:
                    if str(error) != said or pause < LONGEST_RETRY_SECONDS:
                        log.warning("waiting for the broker", error=str(error), next_attempt_in_seconds=pause)
                    said = str(error)
                    admin, self._admin = self._admin, None
                    if admin is not None:
                        await asyncio.to_thread(admin.close)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_RETRY_SECONDS)


async def consumer_at(kafka: KafkaSettings, offsets: Mapping[TP, int], **options: Any) -> AIOKafkaConsumer:
    """A consumer of partitions from these offsets on; waits for as long as the broker is unavailable."""
    consumer = AIOKafkaConsumer(**kafka.client_options(), enable_auto_commit=False, **options)
    try:
        while True:
            try:
                await consumer.start()
                break
            except AIOKafkaError as error:
                if not (error.retriable or isinstance(error, KafkaTimeoutError)):
                    raise
                log.warning("waiting for the broker", error=str(error))
                await asyncio.sleep(RETRY_SECONDS)
    except BaseException:
        await consumer.stop()
        raise
    consumer.assign(list(offsets))
    for tp, offset in offsets.items():
        consumer.seek(tp, offset)
    return consumer


async def read_to(consumer: AIOKafkaConsumer, ends: Mapping[TP, int]) -> AsyncIterator[list[ConsumerRecord]]:
    """The records up to these ends, as they are fetched: none if nothing came for a while."""
    while any([await consumer.position(tp) < end for tp, end in ends.items()]):
        fetched = await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))
        yield [record for records in fetched.values() for record in records]


@dataclass
class StateTable:
    """State records by key. A key names its partition, which is also the one of the changelog."""

    kafka: KafkaSettings
    watch: LogWatch
    name: str
    changelog: str
    recovered_records: int = 0

    async def records(self, partitions: Iterable[int], is_wanted: Callable[[], bool]) -> dict[int, dict[bytes, bytes]]:
        """The state records of partitions: their changelog, read from its beginning to its end.

        Ends early, with some of them, as soon as they are no longer wanted.
        """
        newest: dict[int, dict[bytes, bytes]] = {partition: {} for partition in partitions}
        tps = [TP(self.changelog, partition) for partition in newest]
        begins, ends = await self.watch.begins(tps), await self.watch.ends(tps)
        if begins == ends:
            return newest
        options = {"auto_offset_reset": "earliest", "max_partition_fetch_bytes": RECORD_BYTES}
        consumer = await consumer_at(self.kafka, begins, **options)
        try:
            async for records in read_to(consumer, ends):
                if not is_wanted():
                    break
                self.recovered_records += len(records)
                for record in records:
                    if isinstance(record, SkippedRecords) and record.why in UNREADABLE:
                        raise StateError(
                            f"{record.topic}, partition {record.partition}: the batch with the records "
                            f"{record.offset} to {record.last} cannot be read ({record.why.value})",
                            "only workers may write to changelogs",
                        )
                    if record.value is None:
                        newest[record.partition].pop(record.key, None)
                    else:
                        newest[record.partition][record.key] = record.value
        finally:
            await consumer.stop()
        return newest


class Surveys(Registry):
    """The published surveys, compiled: read to their end before counting starts, and followed from then on.

    One that cannot be used must not stop the counting of others.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, watch: LogWatch) -> None:
        super().__init__()
        self._kafka = kafka
        self._watch = watch
        self._tp = TP(topic, 0)
        self._reading = asyncio.Lock()
        self._consumer: AIOKafkaConsumer | None = None

    async def follow(self) -> None:
        """Read the registry, and follow it for as long as the worker runs."""
        with fatal("reading the surveys"):
            while True:
                await self.catch_up()
                await asyncio.sleep(FOLLOW_SECONDS)

    async def catch_up(self) -> None:
        """Read everything that is published by now."""
        async with self._reading:
            if self._consumer is None:
                self._consumer = await consumer_at(self._kafka, {self._tp: 0})
            async for records in read_to(self._consumer, await self._watch.ends([self._tp])):
                for record in records:
                    if isinstance(record, SkippedRecords) and record.why in UNREADABLE:
                        about = {"first": record.offset, "last": record.last, "why": record.why.value}
                        log.error("published surveys cannot be read", **about)
                    self.register(record)
