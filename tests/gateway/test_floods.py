"""Who asks without an end waits for others, and others do not wait for it."""

import asyncio
import gc
import resource
import socket
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import uvloop

from gateway.http import Limits, tls_context
from tests.gateway.floods import (
    CHUNK,
    CHUNKED,
    GET,
    IN_CHUNKS,
    METRICS,
    Watched,
    connected,
    flood,
    flood_of_handshakes,
    running,
)
from tests.gateway.world import KeepingLog, Served, serving
from tests.helpers.certificates import Authority
from tests.helpers.eventually import eventually

NewLoop = Callable[[], asyncio.AbstractEventLoop]
LOOPS: list[NewLoop] = [uvloop.new_event_loop, asyncio.new_event_loop]
MOST_ANSWERS = 200
MOST_CPU_SECONDS = 0.05
"""Some 10 ms are taken. Of `/metrics` in one turn it were seconds."""
ROUNDS = 8
FLOODS = {
    "GETs": (GET, 1),
    "GETs over 20": (GET, 20),
    "metrics": (METRICS, 5),
    "chunks": (IN_CHUNKS, 15),
}
"""What is sent without an end, and over how many connections."""
PAGE_BYTES = resource.getpagesize()
TAKEN_BYTES = 4 << 20
"""A gateway takes bodies of this size."""


def wait_until_it_rages(watched: Watched, served: Served) -> None:
    eventually(lambda: watched.foreign > 500 or served.listener.held_bytes > 1 << 20)


@pytest.mark.parametrize("kind", FLOODS)
@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_flood_keeps_neither_open_connections_nor_new_ones_waiting(new_loop: NewLoop, kind: str) -> None:
    request, connections = FLOODS[kind]
    with serving(KeepingLog(), new_loop=new_loop) as served, connected(served.port) as client:
        watched = Watched(served)
        with running(partial(flood, served.port, connections, request)):
            wait_until_it_rages(watched, served)
            waits = watched.waits_of_an_open_connection(ROUNDS, client)
            waits += watched.waits_of_new_connections(ROUNDS)
    assert max(wait.answers for wait in waits) <= MOST_ANSWERS
    assert max(wait.cpu_seconds for wait in waits) <= MOST_CPU_SECONDS


@pytest.mark.parametrize("new_loop", LOOPS)
def test_handshakes_do_not_keep_an_open_connection_waiting(new_loop: NewLoop, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = tls_context(*authority.issue("server"), None)
    trust = ssl.create_default_context(cafile=authority.certificate)
    with (
        serving(KeepingLog(), tls=tls, new_loop=new_loop) as served,
        connected(served.port) as plain,
        trust.wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        watched = Watched(served)
        with running(partial(flood_of_handshakes, served.port, 200)):
            eventually(lambda: served.listener.connections > 100)
            waits = watched.waits_of_an_open_connection(ROUNDS, client)
    assert max(wait.cpu_seconds for wait in waits) <= MOST_CPU_SECONDS


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * PAGE_BYTES


@pytest.mark.parametrize(
    ("bodies", "size"),
    [(4, 2 << 20), pytest.param(15, TAKEN_BYTES, marks=pytest.mark.long(part="memory"))],
)
def test_bodies_in_small_chunks_take_little_more_memory_than_their_size(bodies: int, size: int) -> None:
    """Failure would look like: eight times as much, for an object for each chunk."""
    begun = CHUNKED + CHUNK * (size // 6)
    limits = Limits(request_seconds=600)  # a busy machine takes longer than 20 s for ten million chunks
    with serving(KeepingLog(), limits=limits) as served, ExitStack() as opened:
        clients: list[socket.socket] = [opened.enter_context(connected(served.port)) for _ in range(bodies)]
        gc.collect()
        before = resident_bytes()
        for client in clients:
            client.sendall(begun)
        all_of_them = bodies * (size // 6) * 6
        eventually(lambda: served.listener.held_bytes == all_of_them)
        taken = resident_bytes() - before
    assert taken < 1.5 * all_of_them
