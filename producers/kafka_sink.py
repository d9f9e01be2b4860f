"""Records to Kafka: idempotent, acknowledged by all replicas, with a bounded number of bytes in flight."""

from collections import Counter, deque
from contextlib import suppress
from time import monotonic
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from protocols.errors import DeliveryError
from protocols.wire import CONTENT_TYPE_HEADER, MAX_RECORD_BYTES
from servers.kafka_clients import DURABLE, is_refusal, not_allowed, opened
from servers.settings import KafkaSettings

DEADLINE_SECONDS = 120.0
"""How long a record is retried, through broker restarts and elections, before it counts as not delivered."""
IN_FLIGHT_BYTES = 32 << 20
BATCH_BYTES = 1 << 20
"""An idempotent producer has one request per partition in flight, so a request should carry many frames."""
OPEN_SECONDS = 30.0
CLOSE_SECONDS = 5.0


class KafkaSink:
    """Sends records to one topic.

    kafka-python retries records, in order, until the deadline. It does not bound how many it keeps in memory, so this
    class waits for the oldest record before too many bytes are in flight. Every outcome is checked, at the latest by
    `flush`.

    Records are not compressed. Tokens and answers are noise: lz4 makes frames 4 to 7 % smaller, and costs their sender
    13 to 22 ns a report and the worker, whose CPU for a report is about 100 ns, another 10 to 14.
    """

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self.topic = topic
        self._not_allowed = not_allowed(settings, f"Write topic {topic}")
        self._room = IN_FLIGHT_BYTES
        self._in_flight: deque[tuple[int, int, float, Any]] = deque()  # partition, bytes, time of sending, outcome
        self._failed: list[tuple[int, Exception]] = []
        self._since_flush = 0
        self._producer = opened(
            KafkaProducer,
            settings,
            OPEN_SECONDS,
            **DURABLE,
            batch_size=BATCH_BYTES,
            max_request_size=2 * MAX_RECORD_BYTES,
            delivery_timeout_ms=int(DEADLINE_SECONDS * 1000),
            request_timeout_ms=int(min(DEADLINE_SECONDS, 30) * 1000),
            max_block_ms=int(OPEN_SECONDS * 1000),
            reconnect_backoff_max_ms=1000,
            metrics_enabled=False,
        )
        try:
            self.partitions = len(self._producer.partitions_for(topic))
        except KafkaError as error:
            self.close()
            if is_refusal(error):
                raise self._not_allowed from None
            what = f"Kafka at {settings.bootstrap} has no topic {topic!r}: {type(error).__name__}: {error}"
            raise DeliveryError(what.removesuffix(": "), "create the topics first") from None

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        while self._in_flight and self._room < len(value):
            self._await_oldest()
        if self._failed:
            self.flush()
        headers = [(CONTENT_TYPE_HEADER, content_type.encode())]
        self._since_flush += 1
        try:
            outcome = self._producer.send(self.topic, value, headers=headers, partition=partition)
        except KafkaError as error:  # the producer did not accept it
            self._failed.append((partition, error))
            self.flush()
        else:
            self._in_flight.append((partition, len(value), monotonic(), outcome))
            self._room -= len(value)

    def flush(self) -> None:
        while self._in_flight:
            self._await_oldest()
        failed, count = self._failed, self._since_flush
        self._failed, self._since_flush = [], 0
        if any(is_refusal(error) for _, error in failed):
            raise self._not_allowed
        if failed:
            by_partition = Counter(partition for partition, _ in failed)
            where = ", ".join(f"{n} to partition {partition}" for partition, n in sorted(by_partition.items()))
            causes = ", ".join(sorted({type(error).__name__ for _, error in failed}))
            raise DeliveryError(
                f"{len(failed)} of the last {count} records were not delivered to {self.topic!r} within "
                f"{DEADLINE_SECONDS:g} s ({where}): {causes}",
                "check the brokers and run again: delivered reports are not counted twice",
            )

    def close(self) -> None:
        with suppress(KafkaError):
            self._producer.close(timeout=CLOSE_SECONDS)

    def _await_oldest(self) -> None:
        """Wait until the oldest record is acknowledged, or fails.

        At the deadline the producer lets it fail. One that is stuck does not: then the spare time ends the wait.
        """
        partition, size, sent_at, outcome = self._in_flight.popleft()
        try:
            outcome.get(timeout=max(0.0, sent_at + DEADLINE_SECONDS + OPEN_SECONDS - monotonic()))
        except KafkaError as error:
            self._failed.append((partition, error))
        self._room += size
