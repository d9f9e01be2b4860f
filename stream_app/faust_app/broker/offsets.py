"""The first and last offsets of partitions, asked for over connections of their own.

A broker answers the requests of a connection in order, and holds back a fetch while there are no records: a request
after it on the same connection waits as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, KafkaTimeoutError
from faust.types import TP

from servers.settings import KafkaSettings

RETRY_SECONDS = 1.0

T = TypeVar("T")
log = structlog.get_logger(__name__)


async def retry_while_unavailable(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer to a request, which is repeated for as long as it fails because the broker is unavailable."""
    while True:
        try:
            return await ask()
        except KafkaError as error:
            if not (error.retriable or isinstance(error, KafkaTimeoutError)):
                raise
            log.warning("waiting for the broker", error=str(error))
            await asyncio.sleep(RETRY_SECONDS)


class Offsets:
    """Asks the broker for offsets, and waits while it is unavailable."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka

    async def start(self, topics: Iterable[str]) -> None:
        """Connect, and load the metadata of the topics that will be asked about."""
        self._consumer = AIOKafkaConsumer(**self._kafka.client_options(), enable_auto_commit=False)
        await retry_while_unavailable(self._consumer.start)
        await self.ends(TP(topic, 0) for topic in topics)

    async def stop(self) -> None:
        await self._consumer.stop()

    async def begins(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """The first offset that each partition still has."""
        return await self._asked(self._consumer.beginning_offsets, partitions)

    async def ends(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """The offset that the next record of each partition will have."""
        return await self._asked(self._consumer.end_offsets, partitions)

    async def _asked(self, ask: Callable[..., Awaitable[Any]], partitions: Iterable[TP]) -> dict[TP, int]:
        tps = [TopicPartition(*tp) for tp in partitions]
        found = await retry_while_unavailable(lambda: ask(tps))
        return {TP(*tp): offset for tp, offset in found.items()}
