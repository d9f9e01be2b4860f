"""Reading a topic from its beginning to what is its end now."""

from __future__ import annotations

from kafka import KafkaConsumer, TopicPartition

from protocols.wire import CONTENT_TYPE_HEADER
from servers.settings import KafkaSettings


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
