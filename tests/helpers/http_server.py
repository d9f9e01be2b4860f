"""A small HTTP server of a test, in threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@contextmanager
def served(
    handler: type[BaseHTTPRequestHandler], wrapped: Callable[[Any], Any] = lambda socket: socket
) -> Iterator[str]:
    """Its address. `wrapped` may put TLS around its socket."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = wrapped(server.socket)
        server.daemon_threads = True
        server.block_on_close = False  # a client may keep its connection open
        thread = Thread(target=server.serve_forever, args=(0.02,))  # seconds until it sees that it is to end
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(60)
