"""Reading topics from their beginning to what is their end now, and what happens to one: deleted, changed, cut off."""

from pathlib import Path

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec

from protocols.wire import CONTENT_TYPE_HEADER
from servers.kafka_clients import connected
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create, read_topic
from tests.helpers.eventually import eventually

PATIENCE_SECONDS = 30


def read_records(settings: KafkaSettings, topic: str) -> list[tuple[int, str, bytes]]:
    """(partition, content type, value) of every record, partition by partition in order."""
    records = sorted(read_topic(settings, topic), key=lambda record: (record.partition, record.offset))
    return [(one.partition, dict(one.headers)[CONTENT_TYPE_HEADER].decode(), one.value) for one in records]


def delete(kafka: KafkaSettings, topic: str) -> None:
    with connected(KafkaAdminClient, kafka, PATIENCE_SECONDS) as admin:
        admin.delete_topics([topic])
        eventually(lambda: topic not in admin.list_topics())


def configure(kafka: KafkaSettings, topic: str, **configs: object) -> None:
    """Change settings of a topic: `cleanup_policy` is cleanup.policy."""
    named = {name.replace("_", "."): str(value) for name, value in configs.items()}
    with connected(KafkaAdminClient, kafka, PATIENCE_SECONDS) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=named)])


def remake(kafka: KafkaSettings, topics: Topics) -> None:
    """Delete the reports topic, and make it again."""
    delete(kafka, topics.reports)
    create(kafka, topics)


def log_ends(kafka: KafkaSettings, topics: Topics) -> list[int]:
    """The end of each partition of the reports topic."""
    tps = [TopicPartition(topics.reports, partition) for partition in range(topics.partitions)]
    with connected(KafkaAdminClient, kafka, PATIENCE_SECONDS) as admin:
        ends = admin.list_partition_offsets(dict.fromkeys(tps, OffsetSpec.LATEST))
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
