"""Views of a Kafka cluster's finals, made for ever: in a worker, or in a process of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from threading import Event, Thread
from typing import Any

import structlog

from protocols.errors import HearsayError
from servers.settings import KafkaSettings
from stream_app.kafka import TopicFollower, Topics
from stream_app.log import FINALS, OPEN
from views.runner import Runner
from views.sinks.kafka import KafkaTopics
from views.sinks.sink import Made, Sink, check_address, open_sink

TOPICS = "topics"
"""The sink that is the cluster's own result topics."""
POLL_SECONDS = 0.5
RETRY_SECONDS = 2.0
STOP_SECONDS = 10.0

log = structlog.get_logger(__name__)


def everything(survey: str) -> bool:
    return True


def follow(
    kafka: KafkaSettings,
    topics: Topics,
    opened: Callable[[], Sink],
    stopping: Event,
    mine: Callable[[], Any],
    made: Callable[[Made], None],
) -> None:
    """Make views for a sink until `stopping` is set.

    `mine()` gives the surveys to make views of, as a function that equals itself while they are the same. When they are
    others, finals are read from the beginning. Whatever goes wrong is logged and tried again, with a sink opened anew.
    """
    while not stopping.is_set():
        surveys = mine()
        try:
            with closing(TopicFollower(kafka, topics, (FINALS, OPEN))) as followed, closing(opened()) as sink:
                runner = Runner([sink], surveys, made)
                while not stopping.is_set() and mine() == surveys:
                    runner.apply(followed.poll(POLL_SECONDS))
        except HearsayError as error:
            log.warning("results cannot be made; trying again", error=error.message, advice=error.hint)
        except Exception:
            log.exception("results cannot be made; trying again")
        stopping.wait(RETRY_SECONDS)


def nothing(made: Made) -> None:
    """Default for `made`: does nothing."""


@contextmanager
def following(
    kafka: KafkaSettings,
    topics: Topics,
    sinks: Sequence[str],
    mine: Callable[[], Any] = lambda: everything,
    made: Callable[[Made], None] = nothing,
) -> Iterator[None]:
    """Make views for the time of the block, in a thread for each sink: one that fails stops no other.

    `made` is told of the results for TOPICS.
    """
    stopping = Event()
    openers = {sink: opener(sink, kafka, topics) for sink in sinks}
    threads = [
        Thread(
            target=follow,
            args=(kafka, topics, opened, stopping, mine, made if sink == TOPICS else nothing),
            name=f"views for {sink.partition(':')[0]}",
            daemon=True,
        )
        for sink, opened in openers.items()
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
