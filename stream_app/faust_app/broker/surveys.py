"""The survey registry in a worker: read to its end before counting starts, and followed from then on."""

import asyncio
from collections.abc import Iterator

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from faust.types import TP

from protocols.survey import Survey
from servers.settings import KafkaSettings
from stream_app.faust_app.broker.log_watch import LogWatch
from stream_app.faust_app.broker.state_table import retry_while_unavailable
from stream_app.faust_app.crash import fatal
from stream_app.faust_app.overrides.batches import SkippedRecords
from stream_app.kafka.registry import Registry
from stream_app.log.marks import Why

FOLLOW_SECONDS = 1.0

log = structlog.get_logger(__name__)


class Surveys(Registry):
    """The published surveys, compiled. One that cannot be used must not stop the counting of others."""

    def __init__(self, kafka: KafkaSettings, topic: str, watch: LogWatch) -> None:
        super().__init__()
        self._kafka = kafka
        self._watch = watch
        self._tp = TP(topic, 0)
        self._reading = asyncio.Lock()
        self._consumer: AIOKafkaConsumer | None = None

    def __contains__(self, survey: str) -> bool:
        return survey in self.schemes

    def __iter__(self) -> Iterator[Survey]:
        return (scheme.survey for scheme in list(self.schemes.values()))

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
                consumer = AIOKafkaConsumer(**self._kafka.client_options(), enable_auto_commit=False)
                await retry_while_unavailable(consumer.start)
                consumer.assign([self._tp])
                consumer.seek(self._tp, 0)
                self._consumer = consumer
            end = (await self._watch.ends([self._tp]))[self._tp]
            while await self._consumer.position(self._tp) < end:
                batches = await self._consumer.getmany(timeout_ms=1000)
                for record in batches.get(self._tp, []):
                    self.register(record)

    def register(self, record: ConsumerRecord) -> None:
        if isinstance(record, SkippedRecords) and record.why in (Why.TOO_LARGE, Why.UNDECODABLE):
            log.error("published surveys cannot be read", first=record.offset, last=record.last, why=record.why.value)
        super().register(record)
