"""A gateway on the loopback address that keeps what it was sent, for audits of devices."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from random import Random
from threading import Thread
from time import monotonic
from typing import NamedTuple

BUSY = 503, b'{"reason":"unavailable","detail":"the gateway waits for its log"}'
LATE = 422, b'{"reason":"late","detail":"the period is closed"}'
CUT = 0, b""  # no answer: the connection ends
Answer = tuple[int, bytes]
Judge = Callable[[bool], Answer | None]
"""How a request is refused; None: it is not. It is told whether the request is a report."""


class Request(NamedTuple):
    """A request as it came, and when: seconds of this machine's clock."""

    seconds: float
    head: bytes
    body: bytes
    taken: bool = True


def take_all(report: bool) -> Answer | None:
    """Nothing is refused."""
    return None


def refusing(share: float, lasting: float, seed: int) -> Judge:
    """Begin to refuse at random at this share of all requests: busy, late and cut in turns. Terms are never late.

    A request after one that was refused is refused with the chance `lasting`: so some retries are refused, too.

    >>> judge = refusing(0.5, 0.5, seed=1)
    >>> [judge(True) for _ in range(4)].count(None)
    2
    """
    random = Random(seed)
    of_reports = cycle((BUSY, LATE, CUT))
    of_terms = cycle((BUSY, CUT))
    refused = False

    def judge(report: bool) -> Answer | None:
        nonlocal refused
        refused = random.random() < (lasting if refused else share)
        if not refused:
            return None
        return next(of_reports if report else of_terms)

    return judge


@contextmanager
def gateway(terms: bytes, judge: Judge = take_all) -> Iterator[tuple[str, list[Request]]]:
    """Its address, and the requests that it was sent. Whoever asks gets these terms; reports are judged."""
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
            refused = judge(bool(body))
            requests.append(Request(monotonic(), head, body, refused is None))
            if refused is not None:
                status, answer = refused
            if status == 0:
                self.close_connection = True
                return
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
