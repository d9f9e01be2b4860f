"""What a worker reads to its end before it counts: its state in changelogs, which are its store, and the surveys."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.errors import KafkaError, KafkaTimeoutError
from faust.types import TP

from protocols.errors import StateError
from servers.settings import KafkaSettings
from stream_app.faust_app.broker.log_watch import RETRY_SECONDS, LogWatch
from stream_app.faust_app.crash import fatal
from stream_app.faust_app.overrides.batches import SkippedRecords
from stream_app.kafka.registry import Registry
from stream_app.log.codec import RECORD_BYTES
from stream_app.log.marks import Why

POLL_SECONDS = 1.0
"""How long to wait for records before asking whether the partitions are still ours."""
FOLLOW_SECONDS = 1.0

log = structlog.get_logger(__name__)


async def consumer_at(kafka: KafkaSettings, offsets: Mapping[TP, int], **options: Any) -> AIOKafkaConsumer:
    """A consumer of partitions from these offsets on; waits for as long as the broker is unavailable."""
    consumer = AIOKafkaConsumer(**kafka.client_options(), enable_auto_commit=False, **options)
    try:
        while True:
            try:
                await consumer.start()
                break
            except KafkaError as error:
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
                    if isinstance(record, SkippedRecords):
                        _check_skipped(record)
                    elif record.value is None:
                        newest[record.partition].pop(record.key, None)
                    else:
                        newest[record.partition][record.key] = record.value
        finally:
            await consumer.stop()
        return newest


def _check_skipped(record: SkippedRecords) -> None:
    if record.why not in (Why.ABSENT, Why.MARKER):  # a changelog is compacted, so it lacks records
        raise StateError(
            f"{record.topic}, partition {record.partition}: the batch with the records {record.offset} to "
            f"{record.last} cannot be read ({record.why.value})",
            "only workers may write to changelogs",
        )


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
                    self.register(record)

    def register(self, record: ConsumerRecord) -> None:
        if isinstance(record, SkippedRecords) and record.why in (Why.TOO_LARGE, Why.UNDECODABLE):
            log.error("published surveys cannot be read", first=record.offset, last=record.last, why=record.why.value)
        super().register(record)
