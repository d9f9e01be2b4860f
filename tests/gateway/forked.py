"""Commands as processes that start at once: one process imports everything, and forks a child for each of them.

Run as a program, it reads a line of JSON for each child, with its arguments and its log, and answers with its id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from servers.ports import free_port

PATIENCE_SECONDS = 90


@dataclass
class Forked:
    """A `hearsay` command that listens on a port of its own; it can be killed and started again."""

    nursery: Nursery
    arguments: list[str]
    log: Path
    port: int = field(default_factory=free_port)
    pid: int | None = None

    def start(self) -> Forked:
        self.pid = self.nursery.fork([*self.arguments, "--port", str(self.port)], self.log)
        return self

    def kill(self) -> None:
        """As a crash would."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL)
        self.nursery.reap(self.pid)
        self.pid = None

    def leave(self) -> int:
        """Ask it to end, and wait for its exit code."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGTERM)
        code = self.nursery.reap(self.pid)
        self.pid = None
        return code

    def wait_until_ready(self) -> Forked:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ready", timeout=5):
                    return self
            except (urllib.error.URLError, OSError):
                assert time.monotonic() < deadline, f"not ready after {PATIENCE_SECONDS} s:\n{self.log.read_text()}"
                time.sleep(0.02)


class Nursery:
    """The process that forks."""

    def __init__(self, process: subprocess.Popen[str], environment: dict[str, str]) -> None:
        self._process = process
        self.environment = environment

    def fork(self, arguments: list[str], log: Path) -> int:
        return int(self._ask({"fork": arguments, "log": str(log), "environment": self.environment}))

    def reap(self, pid: int) -> int:
        return int(self._ask({"reap": pid}))

    def _ask(self, what: dict[str, object]) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process that forks has ended"
        return answer


@contextmanager
def nursery(**environment: str) -> Iterator[Nursery]:
    """Until the block ends; what was forked is killed then."""
    command = [sys.executable, "-m", "tests.gateway.forked"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            yield Nursery(process, environment)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE_SECONDS)


def _serve_requests(requests: IO[str], answers: IO[str]) -> None:
    children: set[int] = set()
    for line in requests:
        asked = json.loads(line)
        if "reap" in asked:
            _, status = os.waitpid(asked["reap"], 0)
            children.discard(asked["reap"])
            answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        else:
            pid = os.fork()
            if pid == 0:
                _become(asked["fork"], asked["log"], asked["environment"])
            children.add(pid)
            answers.write(f"{pid}\n")
        answers.flush()
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _become(arguments: list[str], log: str, environment: dict[str, str]) -> None:
    """In the child: run the command, with its output in a file."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), descriptor, descriptor)):
        os.dup2(stream, number)
    os.environ.update(environment)
    sys.argv = ["hearsay", *arguments]
    from hearsay.cli import main

    code = 1
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    from stream_app.counting import load_loops

    load_loops()
    _serve_requests(sys.stdin, sys.stdout)
