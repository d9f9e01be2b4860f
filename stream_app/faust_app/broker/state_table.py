"""The state of our partitions of a topic, in memory and in a changelog, which is its store."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.errors import KafkaError, KafkaTimeoutError
from faust.types import TP

from protocols.errors import StateError
from servers.settings import KafkaSettings
from stream_app.counting.state import partition_of_key
from stream_app.faust_app.broker.log_watch import RETRY_SECONDS, LogWatch
from stream_app.faust_app.overrides.batches import SkippedRecords, last_offset
from stream_app.log.codec import RECORD_BYTES
from stream_app.log.marks import Why

POLL_SECONDS = 1.0
"""How long to wait for records before asking whether the partitions are still ours."""

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


class StateTable:
    """State records by key. A key names its partition, which is also the one of the changelog."""

    def __init__(self, kafka: KafkaSettings, watch: LogWatch, name: str, changelog: str) -> None:
        self.name = name
        self.changelog = changelog
        self._watch = watch
        self.recovered_records = 0
        self._kafka = kafka
        self._records: dict[int, dict[bytes, bytes]] = {}  # by partition

    def records(self, partition: int) -> Mapping[bytes, bytes]:
        """The state records of one of our partitions."""
        return self._records[partition]

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set or delete a record that the changelog has. Nothing is written to the changelog."""
        records = self._records.get(partition_of_key(key), {})  # none if it is no longer ours
        if value is None:
            records.pop(key, None)
        else:
            records[key] = value

    async def recover(self, partitions: Iterable[int], is_wanted: Callable[[], bool]) -> None:
        """Read the changelog of these partitions from its beginning to its end; forget all others.

        Ends early as soon as that is no longer wanted.
        """
        self._records = {partition: {} for partition in partitions}
        tps = [TP(self.changelog, partition) for partition in self._records]
        next_offsets, ends = await self._watch.begins(tps), await self._watch.ends(tps)
        if not any(next_offsets[tp] < ends[tp] for tp in tps):
            return
        options = {"auto_offset_reset": "earliest", "max_partition_fetch_bytes": RECORD_BYTES}
        consumer = AIOKafkaConsumer(**self._kafka.client_options(), enable_auto_commit=False, **options)
        try:
            await retry_while_unavailable(consumer.start)
            consumer.assign(tps)
            for tp, offset in next_offsets.items():
                consumer.seek(tp, offset)
            while any(next_offsets[tp] < ends[tp] for tp in tps):
                fetched = await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))
                if not is_wanted():
                    return
                for tp, records in fetched.items():
                    for record in records:
                        self._apply(record)
                    next_offsets[TP(*tp)] = last_offset(records[-1]) + 1
        finally:
            await consumer.stop()

    def _apply(self, record: ConsumerRecord) -> None:
        self.recovered_records += 1
        if not isinstance(record, SkippedRecords):
            self.put(record.key, record.value)
        elif record.why not in (Why.ABSENT, Why.MARKER):  # it is compacted, so it lacks records
            raise StateError(
                f"{record.topic}, partition {record.partition}: the batch with the records {record.offset} to "
                f"{record.last} cannot be read ({record.why.value})",
                "only workers may write to changelogs",
            )
