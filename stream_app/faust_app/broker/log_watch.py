"""Looking at logs: where they begin and end, whether each is still the one that the state contains, and whether its
topic has grown partitions.

kafka-python's admin client is asked, in a thread: aiokafka knows neither the ids of topics nor leader epochs. It has a
connection of its own: a broker answers the requests of a connection in order, and holds back a fetch while there are no
records.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog
from faust.types import TP
from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from protocols.errors import LogError, ServerUnavailable
from servers.kafka_clients import opened
from servers.settings import KafkaSettings
from stream_app.faust_app.overrides.leader_epochs import EpochAdmin
from stream_app.kafka.topics import ANSWER_SECONDS
from stream_app.log.marks import NO_EPOCH, FaultKind, LogFault, LogView, Mark, compare

RETRY_SECONDS = 1.0
"""How long to wait before asking again, where nobody answers; and before a fault that was found is looked for again."""
READ_MORE = "read in docs/operations.md what to do about a log that cannot be read on"
Reading = tuple[Mark, int]  # what a state knows of its log, and its next offset

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

    async def check_exists(self, topic: str) -> None:
        """Raise LogError if a topic is gone or is another."""
        look, _ = await self.faults(topic, {})
        if not look.topic:
            raise LogError(f"topic {topic} was deleted", READ_MORE)

    async def has_partitions(self, topic: str, wanted: int) -> bool:
        """Whether a topic has so many partitions."""
        return (await self._asked(look_at, topic, {})).partitions == wanted

    async def _asked(self, ask: Callable[..., T], *about: Any) -> T:
        """The answer to a question, in a thread of its own. Others are asked while this one waits to be repeated."""
        while True:
            async with self._asking:
                try:
                    if self._admin is None:
                        self._admin = await asyncio.to_thread(opened, EpochAdmin, self._kafka, ANSWER_SECONDS)
                    return await asyncio.to_thread(ask, self._admin, *about)
                except (KafkaError, ServerUnavailable) as error:
                    log.warning("waiting for the broker", error=str(error))
                    admin, self._admin = self._admin, None
                    if admin is not None:
                        await asyncio.to_thread(admin.close)
            await asyncio.sleep(RETRY_SECONDS)
