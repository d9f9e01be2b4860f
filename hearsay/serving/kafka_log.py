"""The log of `hearsay gateway`: the reports topic of a Kafka cluster, and its survey registry."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

import structlog

from producers.sinks import KafkaSink
from protocols.errors import DeliveryError, HearsayError
from protocols.scheme import Scheme
from protocols.wire import FRAME
from servers.settings import KafkaSettings
from stream_app.kafka import Published, Topics, existing, records

DEADLINE_SECONDS = 8.0
"""How long a batch is retried before its senders are told to send again; devices wait 20 seconds."""
SPARE_SECONDS = 2.0
SURVEYS_SECONDS = 5.0
RETRY_SECONDS = 1.0
log = structlog.get_logger(__name__)


def wait_for_topics(kafka: KafkaSettings, prefix: str) -> Topics:
    """The topics of the cluster; waits until a broker answers."""
    while True:
        try:
            return existing(kafka, prefix)
        except HearsayError as error:
            if not error.retriable:
                raise
            log.warning("waiting for the broker", kafka=kafka.bootstrap, error=error.message)
            time.sleep(RETRY_SECONDS)


class KafkaLog:
    """Writes frames to the reports topic and waits for all replicas.

    A producer that failed is replaced by a new one, in a thread of its own: opening it takes as long as the broker is
    away. Until then every write fails at once.
    """

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self.partitions = topics.partitions
        self._kafka = kafka
        self._topic = topics.reports
        self._sink: KafkaSink | None = None
        self._opening: threading.Thread | None = None

    @property
    def connected(self) -> bool:
        return self._sink is not None

    def write(self, frames: list[tuple[int, bytes]]) -> None:
        sink = self._sink
        if sink is None:
            raise DeliveryError("there is no connection to Kafka", "it is opened again as soon as a broker answers")
        try:
            for partition, value in frames:
                sink.send(partition, FRAME, value)
            sink.flush()
        except DeliveryError:
            self._sink = None
            threading.Thread(target=sink.close, name="closing", daemon=True).start()
            raise

    def tend(self) -> None:
        """Open a connection if there is none."""
        if self._sink is None and (self._opening is None or not self._opening.is_alive()):
            self._opening = threading.Thread(target=self._open, name="opening", daemon=True)
            self._opening.start()

    def closed_through(self, survey: str) -> int:
        """Workers close periods, and the gateway does not ask them: it goes by its own clock."""
        return -1

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()

    def _open(self) -> None:
        try:
            self._sink = KafkaSink(self._kafka, self._topic, deadline=DEADLINE_SECONDS, spare=SPARE_SECONDS)
        except HearsayError as error:
            log.warning("waiting for the broker", kafka=self._kafka.bootstrap, error=error.message)


class Registry:
    """The published surveys, read again every few seconds. One that cannot be used here is logged and left out."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self._kafka = kafka
        self._topics = topics
        self._schemes: dict[str, Scheme] = {}
        self._refused: set[tuple[str, str]] = set()  # ids and fingerprints
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="surveys", daemon=True)
        self.read = False

    def start(self) -> Registry:
        self._thread.start()
        return self

    def lookup(self, survey: str) -> Scheme | None:
        return self._schemes.get(survey)

    def all(self) -> Iterable[Scheme]:
        return list(self._schemes.values())

    def stop(self) -> None:
        self._stopped.set()

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                self.catch_up()
            except HearsayError as error:
                log.warning("the surveys could not be read; those known are served", error=error.message)
            self._stopped.wait(SURVEYS_SECONDS)

    def catch_up(self) -> None:
        """Read everything that is published by now."""
        for id, published in records(self._kafka, self._topics).items():
            known = self._schemes.get(id)
            if (known is not None and known.survey == published.survey) or (id, published.fingerprint) in self._refused:
                continue
            scheme = _usable(published)
            if scheme is None:
                self._refused.add((id, published.fingerprint))
            else:
                self._schemes[id] = scheme
        self.read = True


def _usable(published: Published) -> Scheme | None:
    try:
        scheme = Scheme(published.survey)
    except HearsayError as error:
        log.error("a published survey cannot be used", survey=published.survey.id, error=error.message)
        return None
    if scheme.fingerprint != published.fingerprint:
        log.error("this release resolves a survey to other terms than were published", survey=published.survey.id)
        return None
    return scheme
