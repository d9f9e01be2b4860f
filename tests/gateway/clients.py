"""Who sends: with which tokens; and devices that send from many threads, until somebody has confirmed each report."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from random import Random
from threading import Lock, Thread
from typing import Any

from gateway.door import Credential
from gateway.door.credentials import Role, digest_of
from protocols.wire import REPORT

ANSWER_SECONDS = 20.0
PATIENCE_SECONDS = 240.0

Report = dict[str, Any]


def credentials(**roles: Role) -> dict[str, Credential]:
    """What a file of tokens has, by the token and role of each."""
    return {digest_of(token): Credential(digest_of(token), role) for token, role in roles.items()}


def bearer(token: str) -> dict[str, str]:
    """The header of who has a token."""
    return {"authorization": f"Bearer {token}"}


@dataclass
class Crowd:
    """Sends what `reports` gives through any of the ports, until each is taken or its period is closed."""

    ports: Sequence[int]
    reports: Iterator[Report]
    pause: float = 0.0
    sent: list[Report] = field(default_factory=list)
    taken: list[Report] = field(default_factory=list)
    late: list[Report] = field(default_factory=list)
    others: list[tuple[int, bytes]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def start(self, clients: int) -> list[Thread]:
        threads = [Thread(target=self._run, args=(number,), daemon=True) for number in range(clients)]
        for thread in threads:
            thread.start()
        return threads

    def has_taken(self, reports: int) -> bool:
        return len(self.taken) >= reports

    def _next(self) -> Report | None:
        with self._lock:
            report = next(self.reports, None)
            if report is not None:
                self.sent.append(report)
            return report

    def _run(self, seed: int) -> None:
        random = Random(seed)
        while (report := self._next()) is not None:
            body, deadline = json.dumps(report), time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < deadline:
                connection = HTTPConnection("127.0.0.1", random.choice(self.ports), ANSWER_SECONDS)
                with closing(connection), suppress(OSError, HTTPException):
                    connection.request("POST", "/v1/reports", body, {"content-type": REPORT})
                    answer = connection.getresponse()
                    if self._settled(report, answer.status, answer.read()):
                        break
                time.sleep(0.05)
            time.sleep(self.pause * random.random() * 2)

    def _settled(self, report: Report, status: int, content: bytes) -> bool:
        with self._lock:
            if status == 201:
                self.taken.append(report)
            elif status == 422 and json.loads(content)["reason"] == "late":
                self.late.append(report)
            elif status != 503:
                self.others.append((status, content))
            else:
                return False
        return True


def join(threads: Sequence[Thread], running: Callable[[], None] = lambda: None) -> None:
    """Wait for all of them, and call `running` in between."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(thread.is_alive() for thread in threads):
        assert time.monotonic() < deadline, f"devices were still sending after {PATIENCE_SECONDS} s"
        running()
        time.sleep(0.05)
