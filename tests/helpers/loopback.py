"""A gateway on the loopback address that answers as a test wants, and keeps what it was sent."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Handle = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Running:
    """A gateway that runs, and the reports that it was sent."""

    address: str
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
            self._answer(get)

        def do_POST(self) -> None:
            running.posted.append(self.rfile.read(int(self.headers["content-length"])))
            self._answer(post)

        def _answer(self, handle: Handle) -> None:
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
