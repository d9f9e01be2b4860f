"""A dashboard in a thread of the test, and viewers of it that are no browsers."""

import asyncio
import json
import socket
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import uvloop

from hearsay.reports.serving import listening
from pages.dashboard import Dashboard, Source
from pages.dashboard.feed import Result
from tests.helpers.eventually import eventually

PATIENCE_SECONDS = 60.0
LONGEST_SECONDS = 600.0
"""No test needs a dashboard for longer."""


@dataclass
class Running:
    """A running dashboard."""

    address: str
    source: Source
    loop: asyncio.AbstractEventLoop

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    def publish(self, *results: Result) -> None:
        """Publish results of one place, as its source does."""
        feed = self.source.feed
        offsets = (results[-1].offset + 1,)
        self.loop.call_soon_threadsafe(feed.publish, results, [], offsets, True)


@contextmanager
def dashboard(
    source: Source,
    names: frozenset[str] | None = frozenset(),
    **options: Any,
) -> Iterator[Running]:
    """Serve a source on this machine for the time of the block, from when what was published before has been read."""
    loop, up, ending = uvloop.new_event_loop(), Event(), asyncio.Event()
    addresses: list[str] = []

    async def serve() -> None:
        try:
            async with listening(Dashboard(source, **options), "127.0.0.1", 0, 1000, names) as address:
                addresses.append(address)
                up.set()
                await asyncio.wait_for(ending.wait(), LONGEST_SECONDS)
        finally:
            up.set()

    thread = Thread(target=lambda: loop.run_until_complete(serve()), name="dashboard")
    thread.start()
    try:
        assert up.wait(PATIENCE_SECONDS) and addresses, "the dashboard did not start"
        running = Running(addresses[0], source, loop)
        eventually(lambda: source.feed.caught_up)
        yield running
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(PATIENCE_SECONDS)
        loop.close()


def ask(
    running: Running, path: str, method: str = "GET", body: str | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """One request: status, headers in lower case, and the body."""
    with closing(HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_SECONDS)) as connection:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


@dataclass
class Viewer:
    """A page without a browser: it takes the events of a stream into a map, as the page does."""

    running: Running
    survey: str | None = None
    last_id: str = ""
    state: dict[str, Any] = field(default_factory=dict)
    received: list[tuple[str, str]] = field(default_factory=list)  # (id, key) of events that have an id
    resets: int = 0

    def view(self, until: "Callable[[Viewer], bool]", compressed: bool = True) -> None:
        """Read the stream until something is so, then disconnect."""
        headers = {"Accept-Encoding": "gzip"} if compressed else {}
        if self.last_id:
            headers["Last-Event-ID"] = self.last_id
        with closing(HTTPConnection("127.0.0.1", self.running.port, timeout=PATIENCE_SECONDS)) as connection:
            connection.request("GET", f"/events?survey={self.survey}" if self.survey else "/events", headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200
            assert (answer.getheader("Content-Encoding") == "gzip") == compressed
            unpack = zlib.decompressobj(31).decompress if compressed else bytes
            text = b""
            while not until(self):
                chunk = answer.read1(1 << 16)
                assert chunk, "the stream has ended"
                text += unpack(chunk)
                *messages, text = text.split(b"\n\n")
                for message in messages:
                    self.take(message.decode())

    def take(self, message: str) -> None:
        """Take in one message of the stream, as a browser does."""
        fields = dict(line.split(": ", 1) for line in message.splitlines() if not line.startswith(":"))
        self.last_id = fields.get("id", self.last_id)
        if fields.get("event") == "reset":
            self.resets += 1
            self.state.clear()
        elif "data" in fields:
            event = json.loads(fields["data"])
            self.state[event["key"]] = event
            if "id" in fields:
                self.received.append((fields["id"], event["key"]))


def unread(running: Running, path: str) -> socket.socket:
    """A viewer that asks, and then reads nothing."""
    connection = socket.create_connection(("127.0.0.1", running.port), PATIENCE_SECONDS)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return connection
