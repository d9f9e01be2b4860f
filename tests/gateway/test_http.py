"""HTTP that is malformed, huge, slow, pipelined or cut: a reason each, no crash, and nothing held for long."""

import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from random import Random
from select import select

import pytest

from gateway.http import Limits, Response, tls_context
from hearsay.serving.worker import serve_pages
from pages.dashboard import Source
from servers.ports import free_port
from stream_app.local import DirectoryFollower
from tests.gateway.world import KeepingLog, Served, report, serving
from tests.helpers.certificates import Authority
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.dashboards import dashboard
from tests.helpers.eventually import eventually

PATIENCE_SECONDS = 60
HEAD = b"POST /v1/reports HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@contextmanager
def connections(served: Served, *first: bytes) -> Iterator[list[socket.socket]]:
    """A connection for each of these bytes, over which they are sent."""
    with ExitStack() as clients:
        opened = []
        for data in first:
            opened.append(socket.create_connection(("127.0.0.1", served.port), PATIENCE_SECONDS))
            clients.enter_context(opened[-1])
            opened[-1].sendall(data)
        yield opened


def rest(connection: socket.socket) -> bytes:
    """What comes until the connection is closed; if it is not, the time-out of the socket fails the test."""
    answer = b""
    with suppress(ConnectionError):
        while data := connection.recv(65536):
            answer += data
    return answer


def talk(served: Served, *parts: bytes, half_close: bool = False) -> bytes:
    """Send bytes over one connection, and read what comes until it is closed."""
    with connections(served, b"") as (connection,):
        with suppress(OSError):  # refused before everything was sent
            for part in parts:
                connection.sendall(part)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
        return rest(connection)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def statuses(answers: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d+) ", answers)]


def single(body: bytes, *more: bytes) -> bytes:
    return HEAD + b"content-length: %d\r\n" % len(body) + b"".join(more) + b"\r\n" + body


def wait_until_taken(served: Served) -> None:
    """Return when a good report is taken. One that a busy machine sends too slowly is refused like that of others."""

    def is_taken() -> bool:
        try:
            return served.post_one(report()).status == 201
        except (OSError, HTTPException):
            return False

    eventually(is_taken)


def test_requests_that_are_pipelined_are_answered_in_order() -> None:
    good, bad = json.dumps(report()).encode(), json.dumps(report(gap="0000")).encode()
    with serving(KeepingLog()) as served:
        answer = talk(
            served, b"".join(single(body) for body in [good, bad, b"{}"] * 20) + b"GET /live HTTP/1.0\r\n\r\n"
        )
    assert statuses(answer) == [201, 422, 422] * 20 + [200]


def test_a_body_may_come_in_chunks_byte_by_byte_or_after_a_hundred_continue() -> None:
    body = json.dumps(report()).encode()
    chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n%s\r\n" % (len(body), body) + b"0\r\n\r\n"
    with serving(KeepingLog()) as served:
        assert status(talk(served, chunked, half_close=True)) == 201
        assert status(talk(served, *(bytes([byte]) for byte in single(body)), half_close=True)) == 201
        waiting = talk(served, single(body, b"expect: 100-continue\r\n"), half_close=True)
    assert waiting.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 ")


def test_what_is_malformed_too_large_or_wrongly_encoded_is_refused_with_a_reason() -> None:
    body = json.dumps(report()).encode()
    chunk = b"80000\r\n" + bytes(0x80000) + b"\r\n"
    cases = {
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": (400, "malformed"),
        b"GARBAGE\r\n\r\n": (400, "malformed"),
        b"GET /live HTTP/9.9\r\n\r\n": (400, "malformed"),
        HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n": (400, "malformed"),
        HEAD + b"content-length: -1\r\n\r\n": (400, "malformed"),
        HEAD + b"content-type: text/plain\r\ncontent-length: 2\r\n\r\n{}": (400, "malformed"),
        HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n": (400, "malformed"),
        HEAD + b"host: localhost\r\ncontent-length: 2\r\n\r\n{}": (400, "malformed"),
        HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n": (400, "malformed"),
        HEAD + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n": (400, "malformed"),
        HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: y\r\n\r\n": (400, "malformed"),
        HEAD.replace(b"1.1", b"1.0") + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n": (400, "malformed"),
        b"GET /live HTTP/1.1\r\n\r\n": (400, "malformed"),
        b"GET /live HTTP/2.0\r\nhost: localhost\r\n\r\n": (400, "malformed"),
        b"GET ftp://localhost/live HTTP/1.1\r\nhost: localhost\r\n\r\n": (400, "malformed"),
        b"GET http://a@localhost/live HTTP/1.1\r\nhost: localhost\r\n\r\n": (400, "malformed"),
        b"GET http://evil.example/live HTTP/1.1\r\nhost: localhost\r\n\r\n": (421, "misdirected"),
        b"GET /live HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\na": (413, "too-large"),
        b"GET /live HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n": (413, "too-large"),
        HEAD + b"content-length: 99999999999\r\n\r\n": (413, "too-large"),
        HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunk * 9: (413, "too-large"),
        b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000 + b"\r\n\r\n": (431, "too-large"),
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nx: y\r\n\r\n": (431, "too-large"),
        b"GET / HTTP/1.1\r\n" + b"".join(b"x%d: y\r\n" % i for i in range(5000)): (431, "too-large"),
        b"GET /chat HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n": (400, "malformed"),
        single(body.decode().encode("utf-16")): (422, "undecodable"),
        single(b"\xff" + body): (422, "undecodable"),
        single(b"[" * 100_000): (422, "undecodable"),
        single(b'{"survey":"buttons","survey":"buttons"}'): (422, "undecodable"),
        single(b"NaN"): (422, "undecodable"),
        single(b"[]"): (422, "undecodable"),
        single(b""): (422, "undecodable"),
    }
    limits = Limits(request_seconds=30)
    with serving(KeepingLog(), limits=limits) as served:
        for case, (wanted, reason) in cases.items():
            answer = talk(served, case, half_close=wanted == 422)
            assert status(answer) == wanted, (case[:80], answer[:200])
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["reason"] == reason
        wait_until_taken(served)
        eventually(lambda: served.listener.connections == 0 and served.listener.held_bytes == 0)


def test_a_target_may_be_absolute_and_its_host_is_the_one_that_counts() -> None:
    with serving(KeepingLog()) as served:
        for target in (b"http://localhost:80/live", b"HTTP://LOCALHOST/live?x", b"http://[::1]/live"):
            asked = b"GET %s HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n" % target
            assert status(talk(served, asked)) == 200


def test_a_large_answer_arrives_whole_also_if_its_client_sends_no_more() -> None:
    large = Response(200, bytes(range(256)) * 40_000, "text/plain")
    asked = b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with serving(KeepingLog(), pages={"/large": lambda: large}) as served:
        for half_close in (False, True):
            head, _, body = talk(served, asked, half_close=half_close).partition(b"\r\n\r\n")
            assert b"content-length: 10240000\r\n" in head and body == large.body


def test_what_waits_for_its_answer_gets_it_although_something_malformed_follows() -> None:
    log = KeepingLog()
    log.may_write.clear()
    asked = single(json.dumps(report()).encode()) * 2 + b"GARBAGE\r\n\r\n"
    with serving(log) as served, connections(served, asked) as (connection,):
        refused = 'hearsay_gateway_refused_requests_total{reason="malformed"} 1.0'
        eventually(lambda: refused in served.ask("GET", "/metrics").body.decode())
        log.may_write.set()
        assert statuses(rest(connection)) == [201, 201, 400]


def test_whoever_asks_is_served_beside_any_number_of_connections_that_do_not() -> None:
    idle = (b"", b"GET /li", HEAD + b"content-length: 9\r\n\r\n{")
    with serving(KeepingLog(), limits=Limits(connections=10)) as served, connections(served, *idle * 14) as opened:
        assert served.post_one(report()).status == 201
        assert served.listener.connections <= 10
        assert [rest(longest_idle) for longest_idle in opened[:28]] == [b""] * 28


def test_nobody_who_waits_for_an_answer_is_cut_off_for_somebody_new() -> None:
    log = KeepingLog()
    log.may_write.clear()
    asked = [single(json.dumps(report()).encode()) for _ in range(5)]
    with serving(log, limits=Limits(connections=5)) as served, connections(served, *asked) as waiting:
        eventually(lambda: served.writer.waiting == 5)
        assert status(talk(served)) == 503
        log.may_write.set()
        assert [status(connection.recv(1000)) for connection in waiting] == [201] * 5


def test_handshakes_that_never_end_are_few_and_hold_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.http.listening.MOST_HANDSHAKES", 5)
    authority = Authority(tmp_path)
    tls = tls_context(*authority.issue("server"), None)
    hello = b"\x16\x03\x01\x02\x00\x01"  # the beginning of one
    begun = [hello[: number % 6] for number in range(30)]
    with (
        serving(KeepingLog(), tls=tls, limits=Limits(request_seconds=600)) as served,
        connections(served, *begun) as silent,
    ):
        cut_off = [rest(connection) for connection in silent[:25]]
        assert cut_off == [b""] * 25, "the oldest, long before their time is over"
        with (
            connections(served, b"") as (plain,),
            ssl.create_default_context(cafile=authority.certificate).wrap_socket(
                plain, server_hostname="127.0.0.1"
            ) as honest,
        ):
            honest.sendall(b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert status(honest.recv(1000)) == 200
            assert served.listener.connections <= 6


def test_a_handshake_has_the_time_of_a_request(tmp_path: Path) -> None:
    tls = tls_context(*Authority(tmp_path).issue("server"), None)
    with (
        serving(KeepingLog(), tls=tls, limits=Limits(request_seconds=1)) as served,
        connections(served, b"") as (silent,),
    ):
        assert rest(silent) == b""
        eventually(lambda: served.listener.connections == 0)


def test_slow_clients_are_cut_off_and_hold_nobody_up() -> None:
    begun = (b"", b"POST /v1/rep", HEAD, HEAD + b"content-length: 10\r\n\r\n{") * 8
    limits = Limits(request_seconds=1, idle_seconds=1)
    with serving(KeepingLog(), limits=limits) as served, connections(served, *begun) as slow:
        wait_until_taken(served)
        for sent, answer in zip(begun, map(rest, slow), strict=True):
            assert not sent or status(answer) == 408


def test_clients_that_read_no_answers_are_cut_off_whatever_they_still_send() -> None:
    request = b"GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with serving(KeepingLog(), limits=Limits(request_seconds=1)) as served, ExitStack() as clients:
        for at_once in range(1, 61, 3):  # the last answer that fits has more or fewer requests behind it
            (connection,) = clients.enter_context(connections(served, b""))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(0.1)
            with suppress(OSError):  # until the gateway has stopped reading, or has closed the connection
                while True:
                    connection.sendall(request * at_once)
        eventually(lambda: served.listener.connections == 0)
        wait_until_taken(served)


def test_what_waits_for_a_client_that_reads_slowly_is_little_however_much_it_asks() -> None:
    begun = b"GET / HTTP/1.1\r\n" + b"".join(b"a%d:\r\n" % number for number in range(1000))
    with serving(KeepingLog()) as served, connections(served, begun, b"") as (_, slow):
        eventually(lambda: any(each._head_bytes > 4000 for each in list(served.listener._clients)))
        eventually(lambda: all(each._transport is not None for each in list(served.listener._clients)))
        for each in served.listener._clients:  # or the system would hold megabytes of answers
            each._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        slow.setblocking(False)
        for _ in range(500):
            with suppress(BlockingIOError):
                slow.send(b"GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000)
            time.sleep(0.002)
            with suppress(BlockingIOError):
                slow.recv(16384)
            held = [(len(each._headers), len(each._queue)) for each in list(served.listener._clients)]
            assert all(headers < 2 and requests < 80 for headers, requests in held)


def test_a_page_that_cannot_be_made_is_answered_and_the_connection_serves_on() -> None:
    def bad() -> Response:
        raise OSError("told to fail")

    asked = b"GET /bad HTTP/1.1\r\nhost: localhost\r\n\r\nGET /live HTTP/1.0\r\n\r\n"
    with serving(KeepingLog(), pages={"/bad": bad}) as served:
        assert statuses(talk(served, asked)) == [500, 200]


def test_all_requests_together_hold_a_bounded_number_of_bytes() -> None:
    limits = Limits(held_bytes=300_000, request_seconds=30)
    with serving(KeepingLog(), limits=limits) as served:
        start = HEAD + b"content-length: 200000\r\n\r\n" + b" " * 100_000
        with connections(served, start, start, start):
            eventually(lambda: served.listener.held_bytes > 200_000)
            refused = talk(served, HEAD + b"content-length: 200000\r\n\r\n", b" " * 200_000)
            assert status(refused) == 503 and b"retry-after" in refused
        eventually(lambda: served.listener.held_bytes == 0 and served.listener.connections == 0)
        wait_until_taken(served)


def test_random_changes_to_good_requests_never_end_the_gateway() -> None:
    random = Random(5)
    good = single(json.dumps(report()).encode(), b"x-more: yes\r\n")
    with serving(KeepingLog(), limits=Limits(request_seconds=1, idle_seconds=1)) as served:
        for _ in range(150):
            changed = bytearray(good * random.randint(1, 3))
            for _ in range(random.randint(1, 8)):
                place = random.randrange(len(changed))
                if random.random() < 0.5:
                    changed[place] = random.randrange(256)
                else:
                    del changed[place : place + random.randrange(40)]
            answer = talk(served, bytes(changed), half_close=True)
            assert set(statuses(answer)) <= {200, 201, 400, 403, 404, 405, 408, 413, 415, 421, 422, 431}
        wait_until_taken(served)
        assert served.writer.failed is None
        eventually(lambda: served.listener.connections == 0 and served.listener.held_bytes == 0)


# Whatever never ends is refused after a bounded number of bytes: by each of our servers, in every state of the parser.
GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
MOST_BYTES = 6 << 20
"""More than any server here takes of one request: a body of 4 MiB."""
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
    "body": (HEAD + b"content-length: 99999999\r\n\r\n", b"a"),
    "chunk size": (HEAD + CHUNKED, b"0"),
    "chunk extension": (HEAD + CHUNKED + b"5;", b"a"),
    "value of an extension": (HEAD + CHUNKED + b"5;a=", b"a"),
    "quoted extension": (HEAD + CHUNKED + b'5;a="', b"a"),
    "chunk data": (HEAD + CHUNKED + b"5fffffff\r\n", b"a"),
    "chunks": (HEAD + CHUNKED, b"4\r\nabcd\r\n"),
    "tiny chunks": (HEAD + CHUNKED, b"1\r\na\r\n"),
    "chunks with extensions": (HEAD + CHUNKED, b"1;" + 1000 * b"a" + b"\r\na\r\n"),
    "trailer name": (HEAD + CHUNKED + b"0\r\n", b"a"),
    "trailer value": (HEAD + CHUNKED + b"0\r\na: ", b"a"),
    "trailers": (HEAD + CHUNKED + b"0\r\n", b"a: b\r\n"),
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
