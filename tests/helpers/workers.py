"""Workers as their users run them: processes that can be killed, paused, asked to leave, and looked at."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from producers.sinks import KafkaSink
from protocols.scheme import Scheme
from servers.ports import free_port
from servers.settings import KafkaSettings
from stream_app.kafka import Topics
from tests.helpers.eventually import eventually
from tests.stream_app.worlds import SCHEME, Event, deal, wire

SESSION_SECONDS = 3.0
"""A worker that is silent for so long is taken for dead; the test broker allows less than most."""


class WorkerProcess:
    """One `hearsay worker`. Its log stays in a file, over restarts."""

    def __init__(self, kafka: KafkaSettings, topics: Topics, clock_key: bytes, log: Path, *options: str) -> None:
        self.log = log
        self.port = free_port()
        self._environment = {
            **os.environ,
            "HEARSAY_KAFKA_BOOTSTRAP": kafka.bootstrap,
            "HEARSAY_CLOCK_KEY": clock_key.hex(),
        }
        arguments = ["--app", topics.prefix, "--web-port", str(self.port), "--session", str(SESSION_SECONDS), *options]
        self._command = [sys.executable, "-c", "from hearsay.cli import main; main()", "worker", *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> WorkerProcess:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)
        return self

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._wait()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def leave(self) -> int:
        """SIGTERM; the exit code."""
        self._signal(signal.SIGTERM)
        return self._wait()

    def page(self, path: str) -> str:
        """What it answers over HTTP; empty while it does not."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                text: str = answer.read().decode()
                return text
        except (urllib.error.URLError, OSError):
            return ""

    @property
    def ready(self) -> bool:
        return self.page("/ready") != ""

    def wait_until_ready(self) -> WorkerProcess:
        eventually(lambda: self.ready or not self.running, 90)
        assert self.running, self.log.read_text()[-3000:]
        return self

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = [line for line in self.page("/metrics").splitlines() if line.startswith((name + "{", name + " "))]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def logged(self, event: str) -> list[dict[str, object]]:
        """What it said under this heading."""
        lines = self.log.read_text(errors="replace").rpartition("\n")[0].splitlines()  # the last may be half written
        return [entry for entry in map(json.loads, lines) if entry["event"] == event]

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _wait(self) -> int:
        assert self._process is not None
        return self._process.wait(timeout=60)


def send(kafka: KafkaSettings, topics: Topics, events: Iterable[Event], scheme: Scheme = SCHEME) -> None:
    """Put events of a small world on the reports topic, confirmed."""
    sink = KafkaSink(kafka, topics.reports)
    for partition, dealt in enumerate(deal(events, topics.partitions)):
        for event in dealt:
            sink.send(partition, *wire(event, scheme))
    sink.flush()
    sink.close()


@contextmanager
def workers(
    count: int, kafka: KafkaSettings, topics: Topics, clock_key: bytes, directory: Path, *options: str
) -> Iterator[list[WorkerProcess]]:
    """Some workers, started; whatever is left of them at the end is killed."""
    group = [
        WorkerProcess(kafka, topics, clock_key, directory / f"worker-{number}.log", *options) for number in range(count)
    ]
    try:
        yield [worker.start() for worker in group]
    finally:
        for worker in group:
            if worker.running:
                worker.resume()
                worker.kill()
