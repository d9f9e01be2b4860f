"""A gateway on the loopback address that keeps what it was sent: for audits of devices, and for tests of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple

Handle = Callable[[BaseHTTPRequestHandler], None]


class Request(NamedTuple):
    """A request as it came, and when: seconds of this machine's clock."""

    seconds: float
    head: bytes
    body: bytes


@dataclass
class Running:
    """A gateway that runs, the requests that it was sent, and the reports among them."""

    address: str
    requests: list[Request] = field(default_factory=list)
    posted: list[bytes] = field(default_factory=list)


def answering(status: int, body: bytes = b"", **headers: str) -> Handle:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    return handle


TAKEN = answering(201, b"{}")


@contextmanager
def gateway(get: Handle, post: Handle = TAKEN) -> Iterator[Running]:
    """Runs until the block ends. `get` answers the request for terms, `post` those with reports."""
    running = Running("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(get, b"")

        def do_POST(self) -> None:
            if "content-length" not in self.headers:
                self.send_error(411)
                return
            body = self.rfile.read(int(self.headers["content-length"]))
            running.posted.append(body)
            self._answer(post, body)

        def _answer(self, handle: Handle, body: bytes) -> None:
            running.requests.append(
                Request(monotonic(), f"{self.requestline}\r\n".encode("latin-1") + bytes(self.headers), body)
            )
            try:
                handle(self)
            except OSError:
                self.close_connection = True  # the device hung up

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler) as running.address:
        yield running


@contextmanager
def served(
    handler: type[BaseHTTPRequestHandler], wrapped: Callable[[Any], Any] = lambda socket: socket
) -> Iterator[str]:
    """The address of a small HTTP server, in threads of this process. `wrapped` may put TLS around its socket."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = wrapped(server.socket)
        server.daemon_threads = True
        server.block_on_close = False  # a client may keep its connection open
        thread = Thread(target=server.serve_forever, args=(0.02,))  # seconds until it sees that it is to end
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(60)
