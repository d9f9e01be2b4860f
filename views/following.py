"""Views of a Kafka cluster's finals, made for ever: in a worker, or in a process of its own; and its result topics."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from threading import Event, Thread
from typing import Any

import structlog
from kafka import KafkaProducer
from kafka.errors import KafkaError

from protocols.errors import DeliveryError, HearsayError
from servers.kafka_clients import DURABLE, opened
from servers.settings import KafkaSettings
from stream_app.finals import FinalKey
from stream_app.kafka import KafkaMessages, TopicFollower, Topics
from stream_app.log import FINALS, OPEN, RECORD_BYTES, VALUE_BYTES, Output
from views.refusing import Refusals, Refused
from views.results.histogram import HISTOGRAMS
from views.runner import Runner
from views.sinks.sink import Made, Sink, check_address, open_sink
from views.sinks.topics import TopicsSink, periods_of

TOPICS = "topics"
"""The sink that is the cluster's own result topics."""
POLL_SECONDS = 0.5
RETRY_SECONDS = 2.0
STOP_SECONDS = 10.0
OPEN_SECONDS = 30.0
DEADLINE_SECONDS = 60.0

log = structlog.get_logger(__name__)


class KafkaTopics(TopicsSink):
    """The result topics of a cluster."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        super().__init__(VALUE_BYTES)
        self._kafka, self._topics = kafka, topics
        self._published: Collection[FinalKey] | None = None
        self._producer = opened(
            KafkaProducer,
            kafka,
            OPEN_SECONDS,
            **DURABLE,
            max_request_size=RECORD_BYTES,
            delivery_timeout_ms=int(DEADLINE_SECONDS * 1000),
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

    def published(self) -> Collection[FinalKey]:
        """As of the first time that this is asked: what this sink writes later is its own."""
        if self._published is None:
            histograms = KafkaMessages(self._kafka, self._topics).messages(HISTOGRAMS.name)
            self._published = periods_of(message.key for message in histograms)
        return self._published

    def close(self) -> None:
        self._producer.close(timeout=5)


def everything(survey: str) -> bool:
    return True


@contextmanager
def following(
    kafka: KafkaSettings,
    topics: Topics,
    sinks: Sequence[str],
    mine: Callable[[], Any] = lambda: everything,
    made: Callable[[Made], None] = lambda made: None,
    refused: Callable[[Refused], None] = lambda refused: None,
) -> Iterator[None]:
    """Make views for the time of the block, in a thread for each sink: one that fails stops no other.

    `mine()` gives the surveys to make views of, as a function that equals itself while they are the same. When they are
    others, finals are read from the beginning. Whatever goes wrong is logged and tried again, with a sink opened anew.
    `made` is told of the results for TOPICS, `refused` once of each that is not published.
    """
    stopping = Event()
    refusals = Refusals(refused)

    def follow(open_one: Callable[[], Sink], told: Callable[[Made], None]) -> None:
        while not stopping.is_set():
            surveys = mine()
            try:
                with closing(TopicFollower(kafka, topics, (FINALS, OPEN))) as followed, closing(open_one()) as sink:
                    runner = Runner([sink], surveys, told, refusals=refusals)
                    while not stopping.is_set() and mine() == surveys:
                        runner.apply(followed.poll(POLL_SECONDS))
            except HearsayError as error:
                log.warning("results cannot be made; trying again", error=error.message, advice=error.hint)
            except Exception:
                log.exception("results cannot be made; trying again")
            stopping.wait(RETRY_SECONDS)

    openers = {sink: opener(sink, kafka, topics) for sink in sinks}
    threads = [
        Thread(
            target=follow,
            args=(open_one, made if sink == TOPICS else lambda made: None),
            name=f"views for {sink.partition(':')[0]}",
            daemon=True,
        )
        for sink, open_one in openers.items()
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join(STOP_SECONDS)


def opener(sink: str, kafka: KafkaSettings, topics: Topics) -> Callable[[], Sink]:
    """What opens a sink: an address, or TOPICS. An address that is none is refused at once."""
    if sink == TOPICS:
        return lambda: KafkaTopics(kafka, topics)
    check_address(sink)
    return lambda: open_sink(sink)
