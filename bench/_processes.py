"""A server as a child process: one that can be killed, paused, resumed, asked to leave, and looked at; and workers."""

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
from typing import Self

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


class ServerProcess:
    """A server that has pages at a port. Its log stays in a file, over restarts. `words` are what Python is given."""

    name = "server"
    launch: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
    """How its process is begun."""

    def __init__(self, log: Path, port: int, *words: str, **environment: str) -> None:
        self.log = log
        self.port = port
        self._environment = {**os.environ, **environment}
        self._command = [sys.executable, *words]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
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

    @contextmanager
    def serving(self) -> Iterator[Self]:
        """Started, until the block ends."""
        try:
            yield self.start().wait_until_ready()
        finally:
            if self.running:
                self.resume()
                self.kill()

    @property
    def cpu_seconds(self) -> float:
        """That it has computed, in its own code and in the system's."""
        fields = Path(f"/proc/{self._started.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_megabytes(self) -> float:
        pages = int(Path(f"/proc/{self._started.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    @property
    def peak_megabytes(self) -> float:
        """The most that was resident since it was started."""
        lines = Path(f"/proc/{self._started.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6

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

    def wait_until_ready(self) -> Self:
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
            raise ServerError(f"the {self.name} was not started", "call start() first")
        return self._process

    def _wait(self) -> int:
        try:
            return self._started.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise self._error(f"(process {self._started.pid}) did not end within {END_SECONDS:.0f} seconds") from None

    def _error(self, what: str) -> ServerError:
        end_of_log = self.log.read_text(errors="replace")[-SHOWN_CHARACTERS:]
        return ServerError(f"the {self.name} {what}:\n{end_of_log}", f"the log is {self.log}")


class WorkerProcess(ServerProcess):
    """One `hearsay worker` of a cluster. Its `options` are the command's."""

    name = "worker"
    program = ("-m", "hearsay")
    """What its Python runs."""

    def __init__(self, kafka: KafkaSettings, topics: Topics, clock_key: bytes, log: Path, *options: str) -> None:
        port = free_port()
        arguments = ("--app", topics.prefix, "--web-port", str(port), "--session", str(SESSION_SECONDS), *options)
        keys = {"HEARSAY_KAFKA_BOOTSTRAP": kafka.bootstrap, "HEARSAY_CLOCK_KEY": clock_key.hex()}
        super().__init__(log, port, *self.program, "worker", *arguments, **keys)


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
