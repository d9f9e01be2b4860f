"""A dashboard as users start it: a process that can be killed, and started again at the same address."""

from __future__ import annotations

import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.ports import free_port
from tests.helpers.eventually import eventually
from tests.helpers.nursery import HEARSAY, launch

READY_SECONDS = 90.0
END_SECONDS = 90.0


class DashboardProcess:
    """`hearsay dashboard` with some arguments and variables."""

    def __init__(self, log: Path, *arguments: str, **variables: str) -> None:
        self.address = f"http://127.0.0.1:{(port := free_port())}/"
        self._log = log
        self._command = [*HEARSAY, "dashboard", *arguments, "--port", str(port)]
        self._environment = {**os.environ, **variables}

    def start(self) -> DashboardProcess:
        with self._log.open("ab") as log:
            self._process = launch(self._command, env=self._environment, stdout=log, stderr=log)
        eventually(lambda: self._is_ready(), READY_SECONDS)
        return self

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        try:
            with urllib.request.urlopen(f"{self.address}ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(END_SECONDS)

    def end(self) -> int:
        """Ask it to end, and return its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(END_SECONDS)

    @property
    def running(self) -> bool:
        return self._process.poll() is None


@contextmanager
def dashboard_process(log: Path, *arguments: str, **variables: str) -> Iterator[DashboardProcess]:
    """A running dashboard, killed at the end."""
    process = DashboardProcess(log, *arguments, **variables).start()
    try:
        yield process
    finally:
        if process.running:
            process.kill()
