"""Whatever never ends is refused after a bounded number of bytes: by each of our servers, in every state of the parser.

A parser may take 1 microsecond for each byte that it is sent. What is not counted would be parsed, and held, for as
long as the time of a request.
"""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from select import select

import pytest

from hearsay.serving.worker import serve_pages
from pages.dashboard import Source
from servers.ports import free_port
from stream_app.local import DirectoryFollower
from tests.gateway.world import KeepingLog, serving
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.dashboards import dashboard

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n"
POST = b"POST /v1/reports HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
MOST_BYTES = 6 << 20
"""More than any server here takes of one request: a body of 4 MiB."""
PATIENCE_SECONDS = 60.0
STATES: dict[str, tuple[bytes, bytes]] = {
    "before a request": (b"", b"\r\n"),
    "method": (b"", b"GET"),
    "target": (b"GET /", b"a"),
    "header name": (GET, b"a"),
    "header value": (GET + b"a: ", b"a"),
    "space before a value": (GET + b"a:", b" "),
    "headers": (GET, b"a: b\r\n"),
    "length": (GET + b"content-length: ", b"0"),
    "body of a GET": (GET + b"content-length: 99999999\r\n\r\n", b"a"),
    "trailers of a GET": (GET + CHUNKED + b"0\r\n", b"a: b\r\n"),
    "body": (POST + b"content-length: 99999999\r\n\r\n", b"a"),
    "chunk size": (POST + CHUNKED, b"0"),
    "chunk extension": (POST + CHUNKED + b"5;", b"a"),
    "value of an extension": (POST + CHUNKED + b"5;a=", b"a"),
    "quoted extension": (POST + CHUNKED + b'5;a="', b"a"),
    "chunk data": (POST + CHUNKED + b"5fffffff\r\n", b"a"),
    "chunks": (POST + CHUNKED, b"4\r\nabcd\r\n"),
    "tiny chunks": (POST + CHUNKED, b"1\r\na\r\n"),
    "chunks with extensions": (POST + CHUNKED, b"1;" + 1000 * b"a" + b"\r\na\r\n"),
    "trailer name": (POST + CHUNKED + b"0\r\n", b"a"),
    "trailer value": (POST + CHUNKED + b"0\r\na: ", b"a"),
    "trailers": (POST + CHUNKED + b"0\r\n", b"a: b\r\n"),
}


@contextmanager
def a_gateway(directory: Path) -> Iterator[int]:
    with serving(KeepingLog()) as served:
        yield served.port
        assert served.listener.held_bytes == 0


@contextmanager
def a_dashboard(directory: Path) -> Iterator[int]:
    with collecting(directory, small_survey()):
        pass
    with dashboard(Source(lambda: DirectoryFollower(directory))) as running:
        yield running.port


@contextmanager
def a_worker(directory: Path) -> Iterator[int]:
    port = free_port()
    with serve_pages("127.0.0.1", port):
        yield port


@pytest.mark.parametrize("server", [a_gateway, a_dashboard, a_worker])
def test_what_never_ends_is_refused_after_a_bounded_number_of_bytes(
    server: Callable[[Path], AbstractContextManager[int]], tmp_path: Path
) -> None:
    with server(tmp_path) as port:
        before = time.process_time()
        answers = {state: answer_to(port, state) for state in STATES}
        spent = time.process_time() - before
    assert set(answers.values()) <= {400, 405, 413, 431}, answers
    assert spent < len(STATES) * MOST_BYTES * 1e-6


def answer_to(port: int, state: str) -> int:
    """Send without an end in a state, but not more than `MOST_BYTES`: what is answered to that.

    A server that counts refuses it at once. One that does not waits for the end, until time is over (408).
    """
    before, again = STATES[state]
    with closing(socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)) as connection:
        piece = again * (65536 // len(again))
        connection.sendall(before)
        for _ in range(MOST_BYTES // len(piece)):
            if select([connection], [], [], 0)[0]:
                break
            connection.sendall(piece)
        return int(connection.recv(65536).split(b" ", 2)[1])
