"""A gateway on the loopback address that keeps what it was sent, for audits of devices."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic
from typing import NamedTuple


class Request(NamedTuple):
    """A request as it came, and when: seconds of this machine's clock."""

    seconds: float
    head: bytes
    body: bytes


@contextmanager
def gateway(terms: bytes) -> Iterator[tuple[str, list[Request]]]:
    """Its address, and the requests that it was sent. Whoever asks gets these terms; every report is taken."""
    requests = list[Request]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, terms, b"")

        def do_POST(self) -> None:
            if "content-length" not in self.headers:
                self.send_error(411)
                return
            self._answer(201, b"{}", self.rfile.read(int(self.headers["content-length"])))

        def _answer(self, status: int, answer: bytes, body: bytes) -> None:
            head = f"{self.requestline}\r\n".encode("latin-1") + bytes(self.headers)
            requests.append(Request(monotonic(), head, body))
            try:
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
            except OSError:
                self.close_connection = True  # the device hung up

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False  # a device may keep its connection open
        thread = Thread(target=server.serve_forever, args=(0.02,))  # seconds until it sees that it is to end
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join(60)
