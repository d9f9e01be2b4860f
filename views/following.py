"""Views of a Kafka cluster's finals, made for ever: in a worker, or in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from threading import Event
from typing import Any

import structlog

from protocols.errors import HearsayError
from servers.settings import KafkaSettings
from stream_app.kafka import TopicFollower, Topics
from stream_app.log.flushes import FINALS, OPEN
from views.runner import Runner
from views.sinks.sink import Made, Sink

POLL_SECONDS = 0.5
RETRY_SECONDS = 2.0

log = structlog.get_logger(__name__)

Mine = Callable[[str], bool]


def everything() -> Mine:
    return lambda survey: True


def follow(
    kafka: KafkaSettings,
    topics: Topics,
    open_sinks: Callable[[], Sequence[Sink]],
    stopping: Event,
    mine: Callable[[], Any] = everything,
    made: Callable[[Made], None] = lambda made: None,
    until: Callable[[bool], bool] = lambda caught_up: False,
) -> None:
    """Make views until `stopping` is set, or `until` (which is told whether all is read) says that it is enough.

    `mine()` gives the surveys to make views of, as a function that equals itself while they are the same. When they are
    others, finals are read from the beginning. Whatever goes wrong is logged and tried again.
    """
    while not stopping.is_set():
        try:
            if _follow(kafka, topics, open_sinks, stopping, mine, made, until):
                return
        except HearsayError as error:
            log.warning("results cannot be made; trying again", error=error.message)
        except Exception:
            log.exception("results cannot be made; trying again")
        stopping.wait(RETRY_SECONDS)


def _follow(
    kafka: KafkaSettings,
    topics: Topics,
    open_sinks: Callable[[], Sequence[Sink]],
    stopping: Event,
    mine: Callable[[], Any],
    made: Callable[[Made], None],
    until: Callable[[bool], bool],
) -> bool:
    """Returns whether it is over; not if the surveys to make views of have changed."""
    surveys = mine()
    with ExitStack() as held:
        followed = held.enter_context(TopicFollower(kafka, topics, (FINALS, OPEN)))
        sinks = [held.enter_context(closing(sink)) for sink in open_sinks()]
        runner = Runner(sinks, surveys, made)
        while not stopping.is_set():
            runner.apply(followed.poll(POLL_SECONDS))
            if until(followed.caught_up):
                return True
            if mine() != surveys:
                return False
    return True
