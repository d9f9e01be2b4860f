"""The pages of a worker: liveness, readiness and metrics, served by a thread of their own.

The event loop counts, and may be busy with one batch for longer than a probe waits. A thread answers in between. It
reads what the event loop writes, so whatever it iterates over is copied first.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from protocols.errors import ServerError
from stream_app.faust_app.monitoring.metrics import REGISTRY

STUCK_SECONDS = 120.0
"""A worker that has done nothing for so long does not live. Compiling loops at the first start may take a minute."""
REQUEST_SECONDS = 5.0
"""How long a client may take to ask and to read the answer."""

Page = tuple[int, str, bytes]  # status, content type, body
log = structlog.get_logger(__name__)


class Health:
    """Whether a worker lives and is ready. The worker calls `beat` all the time, and sets `ready` once it can tell."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.ready: Callable[[], bool] = lambda: False
        self._now = now
        self._beat_at = now()

    def beat(self) -> None:
        """Note that the worker is doing something, or is waiting for a broker on purpose."""
        self._beat_at = self._now()

    @property
    def live(self) -> bool:
        return self._now() - self._beat_at < STUCK_SECONDS


def pages(health: Health) -> dict[str, Callable[[], Page]]:
    """Every page: `/live`, `/ready` (only once recovery is done) and `/metrics`."""
    return {
        "/live": lambda: _state("live", health.live),
        "/ready": lambda: _state("ready", health.ready()),
        "/metrics": lambda: (200, CONTENT_TYPE_LATEST, generate_latest(REGISTRY)),
    }


@contextmanager
def serve_pages(host: str, port: int) -> Iterator[Health]:
    """Serve the pages for the time of the block, which reports its health. Raises ServerError if the port is taken.

    Port 0 is any free port. The log says which.
    """
    health = Health()
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        server = _Server(family, address, pages(health))
    except OSError as error:
        raise ServerError(
            f"port {port} of {host} cannot be listened on: {error.strerror}",
            "choose another with --web-port: each worker on a machine needs its own",
        ) from None
    thread = Thread(target=server.serve_forever, name="pages", daemon=True)
    thread.start()
    log.info("serving /live, /ready and /metrics", host=host, port=server.server_address[1])
    try:
        yield health
    finally:
        server.shutdown()
        server.server_close()


def _state(name: str, value: bool) -> Page:
    return 200 if value else 503, "application/json; charset=utf-8", json.dumps({name: value}).encode()


class _Server(ThreadingTCPServer):
    """One thread for each request, so that a client that asks nothing keeps no other waiting."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, family: int, address: Any, served: dict[str, Callable[[], Page]]) -> None:
        self.address_family = family
        self.pages = served
        super().__init__(address, _Request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a client did not finish its request")


class _Request(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    timeout = REQUEST_SECONDS
    server: _Server
    server_version, sys_version = "hearsay", ""

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        try:
            status, content_type, body = (404, "text/plain", b"no such page\n") if page is None else page()
        except Exception:  # the state changed while it was read: whoever asks again gets an answer
            log.warning("a page could not be made", page=self.path, exc_info=True)
            status, content_type, body = 500, "text/plain", b"ask again\n"
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Probes ask every few seconds: their requests are not logged."""
