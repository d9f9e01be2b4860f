"""Reading a topic to its present end."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from protocols.errors import ServerUnavailable, TopicError
from servers.kafka_clients import failure, opened
from servers.settings import NO_KAFKA, KafkaSettings
from stream_app.kafka.decompression import TooLarge, limit_decompression
from stream_app.kafka.topics import ANSWER_SECONDS, partition_counts

SILENT_SECONDS = 60.0
"""How long a cluster may send nothing of a topic that has more."""


def read_topic(kafka: KafkaSettings, topic: str, begin: Mapping[int, int] | None = None) -> Iterator[Any]:
    """Every record that the topic has now, as kafka-python returns it; in order within a partition.

    `begin` are offsets by partition (`ends` of an earlier moment) before which nothing is read.
    """
    limit_decompression(kafka.max_batch_bytes)
    with _consumer(kafka, topic) as (consumer, partitions):
        for partition in partitions:
            if begin is not None and partition.partition in begin:
                consumer.seek(partition, begin[partition.partition])
        last = consumer.end_offsets(partitions)
        came_at = time.monotonic()
        while any(consumer.position(partition) < last[partition] for partition in partitions):
            for records in consumer.poll(timeout_ms=1000).values():
                yield from records
                came_at = time.monotonic()
            if time.monotonic() - came_at > SILENT_SECONDS:
                raise ServerUnavailable(
                    f"Kafka at {kafka.bootstrap} sent nothing of {topic} for {SILENT_SECONDS:.0f} seconds, "
                    "although there is more",
                    NO_KAFKA,
                )


def header(record: Any, name: str) -> str | None:
    """The text in a record's first header of this name; None if it is missing."""
    found = (value for key, value in record.headers if key == name and value is not None)
    return next((bytes(value).decode("utf-8", "replace") for value in found), None)


def ends(kafka: KafkaSettings, topic: str) -> dict[int, int]:
    """Where each partition of a topic ends now."""
    with _consumer(kafka, topic) as (consumer, partitions):
        return {partition.partition: offset for partition, offset in consumer.end_offsets(partitions).items()}


@contextmanager
def _consumer(kafka: KafkaSettings, topic: str) -> Iterator[tuple[Any, list[TopicPartition]]]:
    """A consumer of all partitions of a topic, at their beginnings."""
    with explained(kafka, f"topic {topic}"):
        options = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        with closing(opened(KafkaConsumer, kafka, ANSWER_SECONDS, **options)) as consumer:
            numbers = consumer.partitions_for_topic(topic)
            if not numbers:
                partition_counts(kafka, [topic])  # where this user may not even see it, this says so
                raise TopicError(f"topic {topic} does not exist on {kafka.bootstrap}", "run `hearsay topics create`")
            partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
            consumer.assign(partitions)
            yield consumer, partitions


@contextmanager
def explained(kafka: KafkaSettings, what: str) -> Iterator[None]:
    """Raise errors of the Kafka client while something is read as our own."""
    try:
        yield
    except TooLarge as error:
        raise TopicError(f"{what}: {error.message}", error.hint) from None
    except KafkaError as error:
        raise failure(kafka, error, f"Read {what}", f"did not let {what} be read") from error
