"""Where topics begin and end, asked over connections that do nothing else.

A broker answers the requests of a connection in turn, and keeps a fetch for which there are no records: whoever asks
after it waits as long.
"""

from __future__ import annotations

from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.types import TP

from servers.settings import KafkaSettings
from stream_app.faust_app.broker.retrying import patiently


class Offsets:
    """Asks for offsets, for as long as the broker is away."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka

    async def start(self, topics: Iterable[str]) -> None:
        """Connect, and learn now where the topics are that will be asked about."""
        self._consumer = AIOKafkaConsumer(**self._kafka.client_options(), enable_auto_commit=False)
        await patiently(self._consumer.start)
        await self.ends(TP(topic, 0) for topic in topics)

    async def stop(self) -> None:
        await self._consumer.stop()

    async def begins(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """The first offset that each still has."""
        tps = [TopicPartition(*tp) for tp in partitions]
        found = await patiently(lambda: self._consumer.beginning_offsets(tps))
        return {TP(*tp): offset for tp, offset in found.items()}

    async def ends(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """The offset that each will have next."""
        tps = [TopicPartition(*tp) for tp in partitions]
        found = await patiently(lambda: self._consumer.end_offsets(tps))
        return {TP(*tp): offset for tp, offset in found.items()}
