"""A worker as a child process: one that can be killed, paused, resumed, asked to leave, and looked at."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

from protocols.errors import ServerError
from servers.ports import free_port
from servers.private_files import open_private, private_directory
from servers.settings import KafkaSettings
from stream_app.kafka import Topics

SESSION_SECONDS = 3.0
"""A worker that is silent for so long loses its partitions to others. Most brokers want more than the local one."""
READY_SECONDS = 90.0
"""How long a worker may take to compile, join its group and recover its state."""
END_SECONDS = 60.0
"""How long a process may take to end."""
POLL_SECONDS = 0.02
ANSWER_SECONDS = 5.0
SHOWN_CHARACTERS = 3000
"""How much of the end of its log an error shows."""


class WorkerProcess:
    """One `hearsay worker` of a cluster. Its log stays in a file, over restarts; its `options` are the command's."""

    program = ("-m", "hearsay")
    """What its Python runs."""
    launch: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
    """How its process is begun."""

    def __init__(self, kafka: KafkaSettings, topics: Topics, clock_key: bytes, log: Path, *options: str) -> None:
        self.log = log
        self.port = free_port()
        self._environment = {
            **os.environ,
            "HEARSAY_KAFKA_BOOTSTRAP": kafka.bootstrap,
            "HEARSAY_CLOCK_KEY": clock_key.hex(),
        }
        arguments = ["--app", topics.prefix, "--web-port", str(self.port), "--session", str(SESSION_SECONDS), *options]
        self._command = [sys.executable, *self.program, "worker", *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> WorkerProcess:
        private_directory(self.log.parent)
        with open_private(self.log, "ab") as log:
            self._process = type(self).launch(self._command, env=self._environment, stdout=log, stderr=log)
        return self

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would."""
        self._started.send_signal(signal.SIGKILL)
        self._wait()

    def pause(self) -> None:
        """Let it do nothing (SIGSTOP) until `resume`, as on a machine that is overloaded."""
        self._started.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._started.send_signal(signal.SIGCONT)

    def leave(self) -> int:
        """Ask it to leave (SIGTERM), and wait for its exit code."""
        self._started.send_signal(signal.SIGTERM)
        return self._wait()

    def page(self, path: str) -> str:
        """What it answers over HTTP; empty if it does not answer, or answers with an error."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=ANSWER_SECONDS) as answer:
                text: str = answer.read().decode()
                return text
        except (urllib.error.URLError, OSError, HTTPException):  # the last: it ended while it answered
            return ""

    @property
    def ready(self) -> bool:
        """Whether it has recovered its state and counts."""
        return self.page("/ready") != ""

    def wait_until_ready(self) -> WorkerProcess:
        """Return when it is ready; an error if it ends instead, or takes too long."""
        deadline = time.monotonic() + READY_SECONDS
        while not self.ready:
            if not self.running:
                raise self._error("ended while starting")
            if time.monotonic() > deadline:
                raise self._error(f"was not ready within {READY_SECONDS:.0f} seconds")
            time.sleep(POLL_SECONDS)
        return self

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels; of a worker that has ended, 0. A busy one is asked again."""
        deadline = time.monotonic() + READY_SECONDS
        while not (page := self.page("/metrics")) and self.running:
            if time.monotonic() > deadline:
                raise self._error(f"showed no metrics for {READY_SECONDS:.0f} seconds")
            time.sleep(POLL_SECONDS)
        lines = [line for line in page.splitlines() if line.startswith((name + "{", name + " "))]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def logged(self, event: str) -> list[dict[str, object]]:
        """The entries of its log with this event."""
        lines = self.log.read_text(errors="replace").rpartition("\n")[0].splitlines()  # the last may be half written
        return [entry for entry in map(json.loads, lines) if entry["event"] == event]

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerError("the worker was not started", "call start() first")
        return self._process

    def _wait(self) -> int:
        try:
            return self._started.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise self._error(f"(process {self._started.pid}) did not end within {END_SECONDS:.0f} seconds") from None

    def _error(self, what: str) -> ServerError:
        end_of_log = self.log.read_text(errors="replace")[-SHOWN_CHARACTERS:]
        return ServerError(f"the worker {what}:\n{end_of_log}", f"the log is {self.log}")


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
