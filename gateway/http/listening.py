"""Listening on an address: all connections together are bounded in number, in bytes and in time."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from gateway.http.connection import Connection
from gateway.http.messages import Application
from gateway.http.shared import LIMITS, Limits, Shared
from protocols.errors import ServerError, SettingsError

SWEEP_SECONDS = 1.0
BACKLOG = 4096
log = structlog.get_logger(__name__)


class Listener(Shared):
    """The connections of one application on one address."""

    def __init__(self, application: Application, limits: Limits = LIMITS, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(application, limits, tls is not None and tls.verify_mode == ssl.CERT_REQUIRED)
        self._tls = tls
        self._server: Any = None
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int, option: str = "--port") -> int:
        """Listen; returns the port, which the system chooses if it is 0. `option` names it on the command line."""
        loop = asyncio.get_running_loop()
        self.time, self.soon = loop.time, loop.call_soon
        loop.set_exception_handler(_log_without_addresses)
        handshake = None if self._tls is None else self.limits.request_seconds
        try:
            self._server = await loop.create_server(
                lambda: Connection(self), host, port, ssl=self._tls, backlog=BACKLOG, ssl_handshake_timeout=handshake
            )
        except OSError as error:
            raise ServerError(
                f"port {port} of {host} cannot be listened on: {error.strerror}", f"choose another with {option}"
            ) from None
        self._sweeping = asyncio.create_task(self._sweep())
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def stop(self) -> None:
        """Take no more connections, answer what was asked, and end."""
        self.stopping = True
        self._server.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.stop_seconds):
                while any(not connection.idle for connection in self.clients):
                    await asyncio.sleep(0.01)
        if self._sweeping is not None:
            self._sweeping.cancel()
        await asyncio.sleep(0)  # answers that were just given are written
        for connection in list(self.clients):
            connection.close()

    async def _sweep(self) -> None:
        """End the connections whose time is over."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = self.time()
            for connection in [each for each in self.clients if each.deadline < now]:
                connection.expire()


def _log_without_addresses(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What an event loop says by itself has the addresses of both ends: only the kind of error is passed on."""
    error = context.get("exception")
    if not isinstance(error, OSError):  # clients that hang up, and handshakes that fail, are no news
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
