"""HTTP that is malformed, huge, slow, pipelined or cut: a reason each, no crash, and nothing held for long."""

from __future__ import annotations

import json
import re
import socket
from contextlib import ExitStack, closing
from http.client import HTTPException
from random import Random

from gateway.http import Limits
from tests.gateway.world import KeepingLog, Served, report, serving
from tests.helpers.eventually import eventually

PATIENCE_SECONDS = 60
HEAD = b"POST /v1/reports HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


def talk(served: Served, *parts: bytes, half_close: bool = False) -> bytes:
    """Send bytes over one connection, and read what comes until it is closed, or nothing more comes."""
    with closing(socket.create_connection(("127.0.0.1", served.port), PATIENCE_SECONDS)) as connection:
        try:
            for part in parts:
                connection.sendall(part)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # refused before everything was sent
        answer = b""
        try:
            while data := connection.recv(65536):
                answer += data
        except OSError:
            pass
        return answer


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
        HEAD + b"content-length: 99999999999\r\n\r\n": (413, "too-large"),
        HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunk * 9: (
            413,
            "too-large",
        ),
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


def test_slow_clients_are_cut_off_and_hold_nobody_up() -> None:
    with serving(KeepingLog(), limits=Limits(request_seconds=1, idle_seconds=1)) as served:
        slow = [socket.create_connection(("127.0.0.1", served.port), PATIENCE_SECONDS) for _ in range(30)]
        for number, connection in enumerate(slow):
            connection.sendall((b"", b"POST /v1/rep", HEAD, HEAD + b"content-length: 10\r\n\r\n{")[number % 4])
        wait_until_taken(served)
        for number, connection in enumerate(slow):
            answer = b""
            while data := connection.recv(1000):  # it ends, or the time-out of the socket fails the test
                answer += data
            assert number % 4 == 0 or status(answer) == 408
            connection.close()


def test_clients_that_read_no_answers_are_cut_off_whatever_they_still_send() -> None:
    request = b"GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with serving(KeepingLog(), limits=Limits(request_seconds=1)) as served, ExitStack() as clients:
        for at_once in range(1, 61, 3):  # the last answer that fits has more or fewer requests behind it
            connection = socket.create_connection(("127.0.0.1", served.port), PATIENCE_SECONDS)
            clients.enter_context(closing(connection))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(0.1)
            try:
                while True:
                    connection.sendall(request * at_once)
            except OSError:
                pass  # the gateway has stopped reading, or has closed the connection
        eventually(lambda: served.listener.connections == 0)
        wait_until_taken(served)


def test_all_requests_together_hold_a_bounded_number_of_bytes() -> None:
    limits = Limits(held_bytes=300_000, connections=40, request_seconds=30)
    with serving(KeepingLog(), limits=limits) as served:
        start = HEAD + b"content-length: 200000\r\n\r\n" + b" " * 100_000
        open_ = [socket.create_connection(("127.0.0.1", served.port), PATIENCE_SECONDS) for _ in range(3)]
        for connection in open_:
            connection.sendall(start)
        eventually(lambda: served.listener.held_bytes > 200_000)
        refused = talk(served, HEAD + b"content-length: 200000\r\n\r\n", b" " * 200_000)
        assert status(refused) == 503 and b"retry-after" in refused
        many = [socket.create_connection(("127.0.0.1", served.port), PATIENCE_SECONDS) for _ in range(45)]
        assert status(many[-1].recv(1000)) == 503
        for connection in (*open_, *many):
            connection.close()
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
            assert set(statuses(answer)) <= {200, 201, 400, 403, 404, 405, 408, 413, 415, 422, 431}
        wait_until_taken(served)
        assert served.writer.failed is None
        eventually(lambda: served.listener.connections == 0 and served.listener.held_bytes == 0)
