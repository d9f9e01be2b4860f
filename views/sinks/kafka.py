"""Results as messages on the topics of a Kafka cluster."""

from collections.abc import Mapping, Sequence

from kafka import KafkaProducer
from kafka.errors import KafkaError

from protocols.errors import DeliveryError
from servers.kafka_clients import DURABLE, opened
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, Topics
from stream_app.log import RECORD_BYTES, VALUE_BYTES, Output
from views.results.period import HISTOGRAMS
from views.sinks.topics import TopicsSink, last_periods

OPEN_SECONDS = 30.0
DEADLINE_SECONDS = 60.0


class KafkaTopics(TopicsSink):
    """The result topics of a cluster."""

    def __init__(self, kafka: KafkaSettings, topics: Topics, limit: int = VALUE_BYTES) -> None:
        super().__init__(limit)
        self._kafka, self._topics = kafka, topics
        self._complete: dict[str, int] | None = None
        self._producer = opened(
            KafkaProducer,
            kafka,
            OPEN_SECONDS,
            **DURABLE,
            max_request_size=RECORD_BYTES,
            delivery_timeout_ms=int(DEADLINE_SECONDS * 1000),
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )

    def _write(self, stages: Sequence[Sequence[Output]]) -> None:
        try:
            for stage in stages:
                sent = [
                    self._producer.send(self._topics.named(m.topic), m.value, m.key, list(m.headers)) for m in stage
                ]
                for outcome in sent:
                    outcome.get(DEADLINE_SECONDS)
        except KafkaError as error:
            raise DeliveryError(
                f"results could not be published on {self._kafka.bootstrap}: {type(error).__name__}: {error}",
                "see whether the brokers are up, and `hearsay topics check`; results are made again from finals",
            ) from error

    def complete(self) -> Mapping[str, int]:
        """As of the first time that this is asked: what this sink writes later is its own."""
        if self._complete is None:
            histograms = KafkaMessages(self._kafka, self._topics).messages(HISTOGRAMS.name)
            self._complete = last_periods(message.key for message in histograms)
        return self._complete

    def close(self) -> None:
        self._producer.close(timeout=5)
