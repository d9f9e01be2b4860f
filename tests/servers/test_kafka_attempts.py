"""Attempts to reach a cluster that does not answer leave nothing behind, however many there are."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from protocols.errors import ServerUnavailable
from servers import kafka_clients
from servers.kafka_clients import opened
from servers.settings import KafkaSettings
from tests.helpers.certificates import Authority
from tests.helpers.leaks import alone, leaves_nothing

pytestmark = pytest.mark.long(part="cluster")

CLIENTS = [KafkaAdminClient, KafkaConsumer, KafkaProducer]
NOBODY = "127.0.0.1:1"  # no process listens there
WARM_UP = 20


def refuse(client: Callable[..., Any], settings: KafkaSettings, times: int, seconds: float) -> None:
    for _ in range(times):
        with pytest.raises(ServerUnavailable):
            opened(client, settings, seconds)


def connect_to_nobody(client: Callable[..., Any]) -> None:
    nobody = KafkaSettings(bootstrap=NOBODY)
    refuse(client, nobody, WARM_UP, 0.001)
    with leaves_nothing():
        refuse(client, nobody, 1000, 0.001)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_thousand_refused_connections_leave_nothing_open(client: Callable[..., Any]) -> None:
    alone(connect_to_nobody, client)


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
        refuse(client, settings, 1, 0.1)
        for connection in silent:
            connection.close()
        silent.clear()
        with leaves_nothing():
            refuse(client, settings, 3, 0.1)
            for connection in silent:
                connection.close()
            silent.clear()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_that_never_answers_a_tls_handshake_is_given_up(client: Callable[..., Any], tmp_path: Path) -> None:
    alone(shake_hands_with_a_silent_server, client, tmp_path)


def start_a_thousand_times(client: Callable[..., Any]) -> None:
    async def refused(start: Callable[[], Awaitable[None]], times: int) -> None:
        for _ in range(times):
            with suppress(KafkaError):
                await start()
                raise AssertionError("somebody answered")

    async def main() -> None:
        started = client(bootstrap_servers=NOBODY)
        try:
            await refused(started.start, WARM_UP)
            with leaves_nothing():
                await refused(started.start, 1000)
        finally:
            await started.stop()

    asyncio.run(main())


@pytest.mark.parametrize("client", [AIOKafkaConsumer, AIOKafkaProducer])
def test_starting_a_client_of_the_worker_a_thousand_times_leaves_nothing_open(client: Callable[..., Any]) -> None:
    alone(start_a_thousand_times, client)
