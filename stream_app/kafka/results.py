"""Reading published messages from a Kafka cluster."""

from __future__ import annotations

from collections.abc import Iterator

from protocols.survey import Survey
from servers.settings import KafkaSettings
from stream_app.finals import FinalKey
from stream_app.kafka.reading import ends, read_topic
from stream_app.kafka.registry import published
from stream_app.kafka.topics import Topics
from stream_app.log.flushes import FINALS, Output, TopicName


class KafkaMessages:
    """What the workers of a cluster have published, as of the moment of reading."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self._kafka = kafka
        self._topics = topics

    def surveys(self) -> list[Survey]:
        """The published surveys."""
        return list(published(self._kafka, self._topics).values())

    def messages(self, topic: TopicName) -> Iterator[Output]:
        """Every message of a topic, in the order of publication."""
        for record in read_topic(self._kafka, self._topics.named(topic)):
            yield Output(topic, record.key, record.value, tuple(record.headers))

    def count(self, topic: TopicName) -> int:
        return sum(ends(self._kafka, self._topics.named(topic)).values())


def last_finals(kafka: KafkaSettings, topics: Topics) -> dict[str, int]:
    """The last final period of every survey that has one."""
    last: dict[str, int] = {}
    for message in KafkaMessages(kafka, topics).messages(FINALS):
        survey, period = FinalKey.decode(message.key)
        last[survey] = max(last.get(survey, -1), period or 0)
    return last
