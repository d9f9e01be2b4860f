"""Reading topics from their beginning to what is their end now, making one again, and cutting one off."""

from __future__ import annotations

from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import OffsetSpec

from protocols.wire import CONTENT_TYPE_HEADER
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create
from tests.helpers.eventually import eventually


def read_topic(settings: KafkaSettings, topic: str) -> list[tuple[int, str, bytes]]:
    """(partition, content type, value) of every record, partition by partition in order."""
    consumer = KafkaConsumer(**settings.client_options(), auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        partitions = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        found: dict[int, list[tuple[int, str, bytes]]] = {partition.partition: [] for partition in partitions}
        while any(consumer.position(partition) < ends[partition] for partition in partitions):
            for records in consumer.poll(timeout_ms=1000).values():
                for record in records:
                    content_type = dict(record.headers)[CONTENT_TYPE_HEADER].decode()
                    found[record.partition].append((record.partition, content_type, record.value))
    finally:
        consumer.close()
    return [record for number in sorted(found) for record in found[number]]


def remake(kafka: KafkaSettings, topics: Topics) -> None:
    """Delete the reports topic, and make it again."""
    admin = KafkaAdminClient(**kafka.client_options())
    admin.delete_topics([topics.reports])
    eventually(lambda: topics.reports not in admin.list_topics())
    admin.close()
    create(kafka, topics)


def log_ends(kafka: KafkaSettings, topics: Topics) -> list[int]:
    """The end of each partition of the reports topic."""
    admin = KafkaAdminClient(**kafka.client_options())
    tps = [TopicPartition(topics.reports, partition) for partition in range(topics.partitions)]
    ends = admin.list_partition_offsets(dict.fromkeys(tps, OffsetSpec.LATEST))
    admin.close()
    return [ends[tp].offset for tp in tps]


def cut_log(log: Path, batches: int) -> int:
    """Cut a log off after its first batches, as an election does that prefers a broker without the others.

    Its broker must have been killed. Returns the offset at which the log ends from now on.
    """
    (segment,) = log.glob("*.log")
    data, end, offset = segment.read_bytes(), 0, 0
    for _ in range(batches):
        if end == len(data):
            break
        offset = int.from_bytes(data[end : end + 8], "big") + int.from_bytes(data[end + 23 : end + 27], "big") + 1
        end += 12 + int.from_bytes(data[end + 8 : end + 12], "big")
    segment.write_bytes(data[:end])
    return offset
