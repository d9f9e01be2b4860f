"""Topics of a test's own on a real broker: what is sent there, the workers that count it, and what they publish."""

import json
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._processes import WorkerProcess, workers
from producers.kafka_sink import KafkaSink
from protocols.errors import TopicError
from protocols.scheme import Scheme
from servers.settings import KafkaSettings
from stream_app.counting.state import Position
from stream_app.finals import FinalKey
from stream_app.kafka import KafkaMessages, Topics, publish, read_topic
from tests.helpers.eventually import PATIENCE_SECONDS, eventually
from tests.helpers.nursery import run
from tests.stream_app.worlds import KEY, SCHEME, Event, deal, wire
from views.reading import Results
from views.results import HISTOGRAMS

PATIENT = ("--session", "10")
"""A worker that stands still for some seconds stays in its group: otherwise it would begin again, and what it had not
noted as written yet would be written and logged twice. After a kill, the next worker waits as long for its partitions.
"""


@dataclass(frozen=True)
class Counting:
    """A broker, topics on it, and a directory for the logs of workers."""

    kafka: KafkaSettings
    topics: Topics
    directory: Path

    def publish(self, *schemes: Scheme) -> "Counting":
        for scheme in schemes:
            publish(self.kafka, self.topics, scheme.survey)
        return self

    def workers(self, count: int = 1, *options: str, key: bytes = KEY) -> AbstractContextManager[list[WorkerProcess]]:
        """Some workers, for the time of a block."""
        return workers(count, self.kafka, self.topics, key, self.directory, *options)

    def send(self, events: Iterable[Event], scheme: Scheme = SCHEME, partitions: int | None = None) -> None:
        """Put events of a small world on the reports topic, confirmed."""
        dealt = enumerate(deal(events, partitions or self.topics.partitions))
        self.put((partition, *wire(event, scheme)) for partition, some in dealt for event in some)

    def put(self, records: Iterable[tuple[int, str, bytes]], pause: float = 0.0) -> None:
        """Put records (partition, content type, value) on the reports topic, with so many seconds between them."""
        sink = KafkaSink(self.kafka, self.topics.reports)
        for record in records:
            sink.send(*record)
            time.sleep(pause)
        sink.flush()
        sink.close()

    def caught_up(self, through: dict[int, int] | None = None) -> bool:
        """Whether everything on the reports topic, or what is there through some offsets, is in the state.

        Counters may be behind it: what they lack is read again after a crash.
        """
        ends = dict.fromkeys(range(self.topics.partitions), -1) | (through or {})
        for record in self.read(self.topics.reports) if through is None else ():
            ends[record.partition] = record.offset
        held = dict.fromkeys(range(self.topics.partitions), -1)
        for record in self.read(self.topics.counting_changelog):
            if b"position" in record.key and record.value:
                held[record.partition] = Position.decode(record.value).offset
        return all(held[partition] >= end for partition, end in ends.items())  # markers of transactions come after

    def read(self, topic: str) -> list[Any]:
        """The records of a topic that are there now."""
        return list(read_topic(self.kafka, topic))

    @property
    def results(self) -> Results:
        """What is published, as readers get it."""
        return Results(KafkaMessages(self.kafka, self.topics))

    def finals(self) -> dict[FinalKey, bytes]:
        """What is published of every closed period of all surveys: compressed JSON of a `Histogram`."""
        return self.results.values(HISTOGRAMS)

    def until_final(self, periods: int, seconds: float = PATIENCE_SECONDS) -> None:
        """Return when so many periods are final, of all surveys together."""
        eventually(lambda: len(self.finals()) >= periods, seconds)

    def counted(self, survey: str = "s") -> list[int | None]:
        """How many reports the periods of a survey have."""
        return [final.n for final in self.results.histograms(survey)]

    def lost(self, survey: str = "s") -> tuple[object, ...]:
        """What is said to be lost: a first and a last period, and how many reports."""
        live = self.results.live(survey)
        assert live is not None
        return live.lost

    def hearsay(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command as an operator calls it, in a wide terminal."""
        return run(*arguments, **self.environment, COLUMNS="200")

    @property
    def environment(self) -> dict[str, str]:
        """What a process is told to find these topics."""
        return {"HEARSAY_KAFKA_BOOTSTRAP": self.kafka.bootstrap, "HEARSAY_KAFKA_PREFIX": self.topics.prefix}

    def sent_by_edges(self, partitions: int) -> int:
        """The last period that all partitions of an events topic have sent, as their owners say; -1: there is none."""
        through = {}
        with suppress(TopicError):  # the first edge makes the topic
            for record in self.read(f"{self.topics.prefix}.edge"):
                if b"/" in record.key:
                    through[record.key] = int(json.loads(record.value)["totals"]["through"])
        return min(through.values()) if len(through) == partitions else -1

    def recover(self, *options: str) -> subprocess.CompletedProcess[str]:
        """`hearsay recover` after the workers have left: one that was slow to leave counts as running for seconds."""
        tried: list[subprocess.CompletedProcess[str]] = []

        def is_let() -> bool:
            tried.append(self.hearsay("recover", *options))
            return "stop all workers first" not in tried[-1].stderr

        eventually(is_let)
        return tried[-1]


NewCounting = Callable[..., Counting]
