"""`hearsay gateway`, and its log: the reports topic of a Kafka cluster, and its survey registry."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from gateway.door import Times
from gateway.http import most_connections
from gateway.service import Holder, Metrics, SharedKeys, StateFile
from hearsay.serving.key_sharing import KeySharing
from hearsay.serving.running import Exposure, run
from protocols.errors import DeliveryError, HearsayError
from protocols.wire import CONTENT_TYPE_HEADER, FRAME, MAX_RECORD_BYTES
from servers.settings import KafkaSettings, Settings
from stream_app.kafka import Registry, Topics, existing, read_topic

DEADLINE_SECONDS = 8.0
"""How long a batch is retried before its senders are told to send again; devices wait 20 seconds."""
OPEN_SECONDS, STOP_SECONDS = 10.0, 5.0
BATCH_BYTES = 1 << 20
HEADERS = [(CONTENT_TYPE_HEADER, FRAME.encode())]
RETRY_SECONDS = 1.0
log = structlog.get_logger(__name__)


def wait_for_surveys(kafka: KafkaSettings, prefix: str) -> "tuple[Topics, FollowedRegistry]":
    """The topics of the cluster and what is published there; waits until a broker answers."""
    while True:
        try:
            topics = existing(kafka, prefix)
            return topics, FollowedRegistry(kafka, topics)
        except HearsayError as error:
            if not error.retriable:
                raise
            log.warning("waiting for the broker", kafka=kafka.bootstrap, error=error.message)
            time.sleep(RETRY_SECONDS)


class KafkaLog:
    """Writes frames to the reports topic and waits for all replicas.

    A producer that failed is replaced by a new one, in `tend`. Until that is connected, every write fails at once.
    """

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self.partitions = topics.partitions
        self.times = Times()  # workers close periods, and the gateway does not ask them: it goes by its own clock
        self._kafka = kafka
        self._topic = topics.reports
        self._producer: AIOKafkaProducer | None = None
        self._failed: list[AIOKafkaProducer] = []

    @property
    def connected(self) -> bool:
        return self._producer is not None

    async def write(self, frames: list[tuple[int, bytes]]) -> None:
        producer = self._producer
        if producer is None:
            raise DeliveryError("there is no connection to Kafka", "it is opened again as soon as a broker answers")
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                sent = [
                    await producer.send(self._topic, value, partition=partition, headers=HEADERS)
                    for partition, value in frames
                ]
                for confirmation in sent:
                    await confirmation
        except (KafkaError, TimeoutError) as error:
            if self._producer is producer:  # another write may have failed first
                self._producer = None
                self._failed.append(producer)
            raise DeliveryError(f"not confirmed within {DEADLINE_SECONDS:g} s: {type(error).__name__}") from error

    async def tend(self) -> None:
        """Open a connection if there is none."""
        await self._stop_failed()
        if self._producer is not None:
            return
        producer = AIOKafkaProducer(
            **self._kafka.client_options(),
            acks="all",
            enable_idempotence=True,
            compression_type="lz4",
            max_batch_size=BATCH_BYTES,
            max_request_size=2 * MAX_RECORD_BYTES,
            request_timeout_ms=int(DEADLINE_SECONDS * 1000),
        )
        self._failed.append(producer)  # until it is connected
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await producer.start()
            self._producer = self._failed.pop()
        except (KafkaError, OSError) as error:
            log.warning("waiting for the broker", kafka=self._kafka.bootstrap, error=type(error).__name__)

    async def close(self) -> None:
        if self._producer is not None:
            self._failed.append(self._producer)
        await self._stop_failed()

    async def _stop_failed(self) -> None:
        """Stop producers; what they could not deliver is given up, and sent again by devices."""
        while self._failed:
            with suppress(KafkaError, OSError):
                async with asyncio.timeout(STOP_SECONDS):
                    await self._failed.pop().stop()


class FollowedRegistry(Registry):
    """The published surveys: read at the start, and followed."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        super().__init__()
        self._kafka = kafka
        self._surveys = TopicPartition(topics.surveys, 0)
        for record in read_topic(kafka, topics.surveys):
            self.register(record)

    def published_at(self, survey: str) -> float:
        """When the terms of a survey were first published, in seconds since 1970."""
        return self._published[survey].at

    async def follow(self) -> None:
        """Read what is published from now on, for as long as the gateway runs; those known are served meanwhile."""
        while True:
            consumer = AIOKafkaConsumer(**self._kafka.client_options(), enable_auto_commit=False)
            try:
                await consumer.start()
                consumer.assign([self._surveys])
                consumer.seek(self._surveys, 0)
                while True:
                    for record in (await consumer.getmany(timeout_ms=1000)).get(self._surveys, []):
                        self.register(record)
            except (KafkaError, OSError) as error:
                log.warning("the surveys cannot be read; those known are served", error=type(error).__name__)
            finally:
                with suppress(KafkaError, OSError):
                    await consumer.stop()
            await asyncio.sleep(RETRY_SECONDS)


def serve_kafka(
    settings: Settings,
    prefix: str | None,
    exposure: Exposure,
    sharing: KeySharing,
    state: StateFile,
    hold: int,
    hold_data: Path,
    say: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or SIGINT."""
    has_keys = exposure.credentials or sharing.wished or state.path.exists()
    if has_keys:
        state.erase(time.time())  # first of all: nobody knows for how long a broker does not answer
    exposure.check()
    sharing.check()
    connections = most_connections()
    topics, registry = wait_for_surveys(settings.kafka, prefix or settings.kafka.prefix)
    to = KafkaLog(settings.kafka, topics)
    keys = SharedKeys(state, registry.schemes, time.time, registry.published_at) if has_keys else None
    holder = Holder(hold_data, hold) if hold else None

    def started(address: str) -> None:
        say(f"Taking reports for {topics.reports} at {address}")

    async def beside(metrics: Metrics) -> None:
        following = registry.follow()
        if keys is None:
            await following
        else:
            metrics.watch("key_hours", keys.hours_left)
            await asyncio.gather(following, sharing.run(keys, metrics))

    def ready() -> bool:
        return to.connected

    serving = run(
        exposure,
        registry.schemes,
        to,
        keys,
        say,
        started,
        beside,
        connections,
        ready=ready,
        holder=holder,
        refused=registry.refused,
    )
    uvloop.run(serving)
