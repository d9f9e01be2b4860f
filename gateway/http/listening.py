"""Listening on an address: all connections together are bounded in number, in bytes and in time.

The file descriptors of this process bound their number.
"""

import asyncio
import errno
import resource
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from gateway.http.connection import FULL, Connection, Limits, Shared
from gateway.http.hello import whole_hello
from gateway.http.messages import Application
from gateway.http.turns import COST_OF_A_HANDSHAKE
from protocols.errors import ServerError, SettingsError
from servers.ports import is_loopback

SWEEP_SECONDS = 1.0
BACKLOG = 4096
ACCEPTED_AT_ONCE = 25
"""Connections that are accepted before those that are open get their turn: each takes a tenth of a millisecond."""
MOST_HANDSHAKES = 500
"""A handshake takes some 50 KB before its client has sent a byte. The oldest is cut off when one more begins."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
log = structlog.get_logger(__name__)


class Listener(Shared):
    """The connections of one application on one address.

    On a loopback address, clients must call it by a name of this machine or one of `names`: a web page whose name was
    made to lead here is refused. None: by any name. `knows_addresses` says whether requests have their address.
    """

    def __init__(
        self,
        application: Application,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
        names: frozenset[str] | None = frozenset(),
        knows_addresses: bool = False,
    ) -> None:
        verifies_clients = tls is not None and tls.verify_mode == ssl.CERT_REQUIRED
        super().__init__(application, limits, verifies_clients, knows_addresses)
        self._tls = tls
        self._named = names
        self._sockets: list[socket.socket] = []
        self._handshakes: dict[Connection, None] = {}
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int, option: str = "--port") -> int:
        """Listen; returns the port, which the system chooses if it is 0. `option` names it on the command line."""
        loop = asyncio.get_running_loop()
        self.time = loop.time
        loop.set_exception_handler(_log_without_addresses)
        try:
            self._sockets = _bound(host, port)
        except OSError as error:
            raise ServerError(
                f"port {port} of {host} cannot be listened on: {error.strerror}", f"choose another with {option}"
            ) from None
        if is_loopback(host) and self._named is not None:
            self.names = LOOPBACK | {host.lower()} | self._named
        for listening in self._sockets:
            loop.add_reader(listening, self._accept, listening)
        self._sweeping = asyncio.create_task(self._sweep())
        chosen: int = self._sockets[0].getsockname()[1]
        return chosen

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, _ = listening.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self._rest_from_accepting(listening)
                return  # otherwise nobody waits any more
            accepted.setblocking(False)
            if self._make_room():
                self._open(Connection(self), accepted)
            else:
                self.application.refused(FULL)
                with accepted, suppress(OSError):
                    if self._tls is None:
                        accepted.send(FULL.encoded(True))

    def _open(self, connection: Connection, accepted: socket.socket) -> None:
        """Make a connection of a socket, with TLS after a handshake."""
        opening: asyncio.Future[Any]
        if self._tls is None:
            loop = asyncio.get_running_loop()
            opening = asyncio.ensure_future(loop.connect_accepted_socket(lambda: connection, accepted))
        else:
            opening = asyncio.ensure_future(self._shake_hands(connection, accepted, self._tls))
            self._make_room_for_a_handshake()
            self._handshakes[connection] = None
        self._clients.add(connection)
        self.resting(connection)
        connection.opening = opening

        def opened(_: object) -> None:
            self._handshakes.pop(connection, None)
            if opening.cancelled() or opening.exception() is not None:  # a failed handshake is normal on an open port
                self.discard(connection)
                accepted.close()

        opening.add_done_callback(opened)

    async def _shake_hands(self, connection: Connection, accepted: socket.socket, tls: ssl.SSLContext) -> None:
        """Open a connection when its client has said hello, and its turn has come.

        Whoever is silent takes no turn: or 500 who speak all at once would be answered in one.
        """
        seconds = self.limits.request_seconds
        async with asyncio.timeout(seconds):
            await whole_hello(accepted)
            await self.turns.turn(COST_OF_A_HANDSHAKE)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, accepted, ssl=tls, ssl_handshake_timeout=seconds
            )

    def _make_room_for_a_handshake(self) -> None:
        if len(self._handshakes) >= MOST_HANDSHAKES:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            oldest.close()

    def _make_room(self) -> bool:
        """Whether there may be one more connection. The one that has asked nothing for the longest time leaves for it.

        Refusing new ones instead would let those who open many and ask nothing keep everybody else out.
        """
        if len(self._clients) < self.limits.connections:
            return True
        oldest = next(iter(self._resting), None)
        if oldest is None:
            return False
        self.discard(oldest)
        oldest.close()
        return True

    def _rest_from_accepting(self, listening: socket.socket) -> None:
        log.error("no connection can be accepted: there are too few file descriptors", hint="raise `ulimit -n`")
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)

        def accept_again() -> None:
            if not self.stopping:
                loop.add_reader(listening, self._accept, listening)

        loop.call_later(SWEEP_SECONDS, accept_again)

    async def stop(self) -> None:
        """Take no more connections, answer what was asked, and end."""
        self.stopping = True
        for listening in self._sockets:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.stop_seconds):
                while any(not connection.idle for connection in self._clients):
                    await asyncio.sleep(0.01)
        if self._sweeping is not None:
            self._sweeping.cancel()
        await asyncio.sleep(0)  # answers that were just given are written
        for connection in list(self._clients):
            connection.close()

    async def _sweep(self) -> None:
        """End the connections whose time is over."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = self.time()
            for connection in [each for each in self._clients if each.deadline < now]:
                connection.expire()


def _bound(host: str, port: int) -> list[socket.socket]:
    """Sockets on every address of a host, all with the same port."""
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            at = sockets[0].getsockname()[1] if sockets else port
            sockets.append(socket.create_server((address[0], at, *address[2:]), family=family, backlog=BACKLOG))
            sockets[-1].setblocking(False)
    except OSError:
        for opened in sockets:
            opened.close()
        raise
    return sockets


def _log_without_addresses(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What an event loop says by itself has the addresses of both ends: only the kind of error is passed on."""
    error = context.get("exception")
    if not isinstance(error, OSError):  # clients that hang up and failed handshakes are normal
        log.error("an unexpected error in the event loop", kind=type(error).__name__, exc_info=error)


def tls_context(certificate: Path, key: Path, client_authority: Path | None) -> ssl.SSLContext:
    """TLS 1.2 or later; with an authority, clients must show a certificate of it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        if client_authority is not None:
            context.load_verify_locations(client_authority)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:
        raise SettingsError(f"the TLS files cannot be used: {error}", "check --tls-certificate and --tls-key") from None
    return context


MOST_CONNECTIONS = 10_000
KEPT = 200
"""Descriptors for everything else: logs, the store, Kafka, health pages, and files that are open for a moment."""
FEWEST = 64
"""With fewer connections, the pages of one browser and a few devices would push each other out."""


def most_connections() -> int:
    """Raise the limit of file descriptors as far as this process may, and say how many connections that allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(soft, MOST_CONNECTIONS + KEPT)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    if hard < KEPT + FEWEST:
        raise ServerError(
            f"{hard} file descriptors are too few to serve with: {KEPT + FEWEST} are needed at least",
            "raise their limit: `ulimit -Hn`, or LimitNOFILE of a systemd service",
        )
    return min(MOST_CONNECTIONS, hard - KEPT)
