"""Clients that ask without an end, and how long a gateway lets somebody else wait meanwhile.

Waits are counted in answers to others, and in CPU seconds of the thread that serves. Both are read in that thread: what
a busy machine does between two of its instructions changes neither.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from select import select
from threading import Event, Thread

from gateway.http import Answer, Request
from tests.gateway.world import Served

PATIENCE_SECONDS = 60
MINE = b"GET /live?mine HTTP/1.1\r\nhost:[::1]\r\n\r\n"
GET = b"GET /live HTTP/1.1\r\nhost:[::1]\r\n\r\n"
METRICS = b"GET /metrics HTTP/1.1\r\nhost:[::1]\r\n\r\n"
POST = b"POST /v1/reports HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
CHUNK = b"6\r\nabcdef\r\n"
"""The smallest that may be sent without an end: five bytes of framing for six of data."""
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"
IN_CHUNKS = CHUNKED + CHUNK * 600_000 + b"0\r\n\r\n"
"""A body of 3.6 MB, which is refused at its first letter."""
AT_ONCE_BYTES = 256 << 10
LOOK_SECONDS = 0.05
"""How long a flood waits for a socket before it looks whether to stop."""
BETWEEN_SECONDS = 0.02
"""Between two waits, so that they begin at different moments of the flood."""


@dataclass(frozen=True)
class Wait:
    """What a server did between a question and its answer."""

    answers: int  # to others
    cpu_seconds: float


class Watched:
    """Counts what a gateway answers, and asks in between."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._handle = served.gateway.handle
        self.foreign = 0
        self._begun = (0, 0.0)
        self._waits: SimpleQueue[Wait] = SimpleQueue()
        served.gateway.handle = self._counting  # type: ignore[method-assign]

    def _counting(self, request: Request, answer: Answer) -> None:
        if request.query == b"mine":
            answers, cpu_seconds = self._begun
            self._waits.put(Wait(self.foreign - answers, time.thread_time() - cpu_seconds))
        else:
            self.foreign += 1
        self._handle(request, answer)

    def wait(self, ask: Callable[[], object]) -> Wait:
        """Ask in the thread that serves, between two of its steps, and see what it does first."""

        def begin() -> None:
            self._begun = (self.foreign, time.thread_time())
            ask()

        self._served.loop.call_soon_threadsafe(begin)
        return self._waits.get(timeout=PATIENCE_SECONDS)

    def waits_of_an_open_connection(self, times: int, client: socket.socket) -> list[Wait]:
        waits = []
        for _ in range(times):
            waits.append(self.wait(partial(client.sendall, MINE)))
            assert client.recv(4096).startswith(b"HTTP/1.1 200 "), "no answer to what was asked"
            time.sleep(BETWEEN_SECONDS)
        return waits

    def waits_of_new_connections(self, times: int) -> list[Wait]:
        waits = []
        for _ in range(times):
            with socket.socket() as client:
                client.settimeout(PATIENCE_SECONDS)

                def ask(client: socket.socket = client) -> None:
                    client.connect(("127.0.0.1", self._served.port))  # the system accepts it
                    client.sendall(MINE)

                waits.append(self.wait(ask))
                assert client.recv(4096).startswith(b"HTTP/1.1 200 "), "no answer to what was asked"
            time.sleep(BETWEEN_SECONDS)
        return waits


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)


@contextmanager
def running(flood: Callable[[Event], None]) -> Iterator[None]:
    """A flood in a thread of its own, until the block ends."""
    stop = Event()
    thread = Thread(target=flood, args=[stop], daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "a flood did not stop"


def flood(port: int, connections: int, request: bytes, stop: Event) -> None:
    """Send a request again and again over some connections, as fast as they take it, and drop the answers."""
    repeated = request * (1 + AT_ONCE_BYTES // len(request))
    with ExitStack() as opened:
        clients = [opened.enter_context(connected(port)) for _ in range(connections)]
        left = dict.fromkeys(clients, memoryview(repeated))
        for client in clients:
            client.setblocking(False)
        while not stop.is_set():
            readable, writable, _ = select(clients, clients, [], LOOK_SECONDS)
            for client in readable:
                with suppress(BlockingIOError):
                    assert client.recv(1 << 20), "the gateway closed the connection of a flood"
            for client in writable:
                with suppress(BlockingIOError):
                    sent = client.send(left[client][:AT_ONCE_BYTES])
                    left[client] = left[client][sent:] or memoryview(repeated)


def flood_of_handshakes(port: int, connections: int, stop: Event) -> None:
    """Begin handshakes, some at the same time, and leave when they are answered."""
    hello = client_hello()
    while not stop.is_set():
        with ExitStack() as opened, suppress(ConnectionError):
            clients = [opened.enter_context(connected(port)) for _ in range(connections)]
            for client in clients:
                client.sendall(hello)
            for client in clients:
                client.recv(65536)


def client_hello() -> bytes:
    """What a client of TLS says first."""
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()
