"""`hearsay serve` and `hearsay gateway` as processes that can be killed and started again."""

import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from servers.ports import free_port
from tests.helpers.nursery import END_SECONDS, Child, the_nursery

READY_SECONDS = 90


@dataclass
class Brood:
    """What was forked with some variables of its own."""

    environment: dict[str, str]
    children: list[Child] = field(default_factory=list)

    def fork(self, arguments: list[str], log: Path) -> Child:
        environment = {**os.environ, **self.environment}
        self.children.append(the_nursery().fork(arguments, [str(log)] * 2, environment, str(Path.cwd())))
        return self.children[-1]


@contextmanager
def nursery(**environment: str) -> Iterator[Brood]:
    """Until the block ends; what was forked is killed then."""
    brood = Brood(environment)
    try:
        yield brood
    finally:
        for child in brood.children:
            child.kill()
            child.wait(END_SECONDS)


@dataclass
class Forked:
    """A `hearsay` command that listens on a port of its own; it can be killed and started again."""

    nursery: Brood
    arguments: list[str]
    log: Path
    port: int = field(default_factory=free_port)
    child: Child | None = None

    def start(self) -> "Forked":
        self.child = self.nursery.fork([*self.arguments, "--port", str(self.port)], self.log)
        return self

    def kill(self) -> None:
        """As a crash would."""
        self._end(signal.SIGKILL)

    def leave(self) -> int:
        """Ask it to end, and wait for its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        assert self.child is not None
        self.child.send_signal(number)
        return self.child.wait(END_SECONDS)

    def wait_until_ready(self) -> "Forked":
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ready", timeout=5):
                    return self
            except (urllib.error.URLError, OSError):
                assert time.monotonic() < deadline, f"not ready after {READY_SECONDS} s:\n{self.log.read_text()}"
                time.sleep(0.02)
