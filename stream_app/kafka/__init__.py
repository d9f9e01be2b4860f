"""Topics, the survey registry, dead letters and published results on a Kafka cluster."""

from stream_app.kafka.clocks import Clocks, read_clocks
from stream_app.kafka.dead_letters import RESUBMITTED, DeadLetter, Refusals, dead_letters, noted
from stream_app.kafka.decompression import limit_decompression
from stream_app.kafka.following import KafkaMessages, TopicFollower, last_finals
from stream_app.kafka.reading import ends, read_topic
from stream_app.kafka.registry import Published, Registry, publish, publish_for, published
from stream_app.kafka.roles import Right, Role, allowed, check_rights, roles, visible
from stream_app.kafka.topics import Topic, Topics, check, cluster_id, create, existing, retentions
