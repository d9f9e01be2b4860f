"""Attempts to reach a cluster that does not answer leave nothing behind, however many there are."""

import gc
import multiprocessing
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from protocols.errors import ServerUnavailable
from servers import kafka_clients
from servers.kafka_clients import opened
from servers.settings import KafkaSettings
from tests.helpers.certificates import Authority

pytestmark = pytest.mark.long(part="cluster")

CLIENTS = [KafkaAdminClient, KafkaConsumer, KafkaProducer]
MORE_BYTES = 8 << 20
"""More memory than this would be a leak."""
A_FEW = 5
"""Less than what four attempts would leave."""
SECONDS = 60.0
PROCESS_SECONDS = 500.0


def refuse(client: Callable[..., Any], settings: KafkaSettings, times: int, seconds: float) -> None:
    for _ in range(times):
        with pytest.raises(ServerUnavailable):
            opened(client, settings, seconds)


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that does this with every connection, in a thread; the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):  # closed at the end
                while True:
                    connection, _ = server.accept()
                    serve(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield "{}:{}".format(*server.getsockname())
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(30)


def use_another_certificate(client: Callable[..., Any], tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path / "theirs").issue("broker")
    ours = Authority(tmp_path / "ours").certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def shake_hands(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            context.wrap_socket(connection, server_side=True).close()

    with listening(shake_hands) as address:
        settings = KafkaSettings(bootstrap=address, security="SSL", ssl_ca=ours)
        refuse(client, settings, 5, 0.05)
        with leaves_nothing():
            refuse(client, settings, 25, 0.05)


@pytest.mark.parametrize("client", CLIENTS)
def test_certificates_that_do_not_fit_leave_nothing_open(client: Callable[..., Any], tmp_path: Path) -> None:
    alone(use_another_certificate, client, tmp_path)


def shake_hands_with_a_silent_server(client: Callable[..., Any], tmp_path: Path) -> None:
    kafka_clients.SPARE_SECONDS = 0.1
    silent: list[socket.socket] = []
    with listening(silent.append) as address:
        settings = KafkaSettings(bootstrap=address, security="SSL", ssl_ca=Authority(tmp_path).certificate)
        for times, left in ((1, nullcontext()), (3, leaves_nothing())):
            with left:
                refuse(client, settings, times, 0.1)
                while silent:
                    silent.pop().close()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_that_never_answers_a_tls_handshake_is_given_up(client: Callable[..., Any], tmp_path: Path) -> None:
    alone(shake_hands_with_a_silent_server, client, tmp_path)


def alone(check: Callable[..., None], *arguments: Any) -> None:
    """Run this check in a process of its own: what other tests keep, such as what was logged, is not held there."""
    process = multiprocessing.get_context("spawn").Process(target=check, args=arguments)
    process.start()
    process.join(PROCESS_SECONDS)
    if process.exitcode is None:
        process.kill()
    assert process.exitcode == 0, f"ended with {process.exitcode} within {PROCESS_SECONDS:g} s (None: it did not end)"


def held() -> tuple[int, int]:
    """How many descriptors and threads this process has."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def leaves_nothing() -> Iterator[None]:
    before, memory = held(), resident_bytes()
    yield
    deadline = time.monotonic() + SECONDS
    while any(now > then + A_FEW for now, then in zip(held(), before, strict=True)):  # a last thread may be ending
        assert time.monotonic() < deadline, f"held before: {before}, and {SECONDS:g} s after: {held()}"
        time.sleep(0.1)
    more = resident_bytes() - memory
    assert more < MORE_BYTES, f"{more} bytes more than before"
