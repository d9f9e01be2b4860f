"""Topics, the survey registry and published results on a Kafka cluster."""

from stream_app.kafka.reading import ends, read_topic
from stream_app.kafka.registry import publish, published
from stream_app.kafka.results import KafkaResults
from stream_app.kafka.sizes import check_sizes
from stream_app.kafka.topics import Topics, check, cluster_id, create, existing

__all__ = [
    "KafkaResults",
    "Topics",
    "check",
    "check_sizes",
    "cluster_id",
    "create",
    "ends",
    "existing",
    "publish",
    "published",
    "read_topic",
]
