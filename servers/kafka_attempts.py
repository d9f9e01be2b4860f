"""One attempt to open a client of kafka-python. An attempt that fails leaves nothing open, and every attempt ends.

When its first connection fails, a client of kafka-python leaves behind a thread, the sockets of its event loop and
those over which it tried to connect; and it waits without a limit for the answer to a TLS handshake. So the attempt
makes the client's event loop itself, and closes it.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable
from threading import Timer
from typing import Any, TypeVar
from weakref import WeakSet

from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

SPARE_SECONDS = 10.0
"""How much longer than its own limit an attempt may take before it is ended."""
STOP_SECONDS = 10.0
"""How long the thread of a failed client may take to end: it may be waiting for a name server."""
T = TypeVar("T")


def attempted(client: Callable[..., T], seconds: float, **options: Any) -> T:
    """A client that has connected within so many seconds. Raises what kafka-python raises if it has not."""
    io = _Connections()
    limit = Timer(seconds + SPARE_SECONDS, io.give_up)
    limit.start()
    try:
        milliseconds = int(seconds * 1000)
        return client(**options, bootstrap_timeout_ms=milliseconds, kafka_client=io.client, selector=_ClosingSelector)
    except BaseException:
        io.close()
        raise
    finally:
        limit.cancel()
        limit.join()


class _Connections:
    """The event loop and the connections of one client."""

    def __init__(self) -> None:
        self._made: list[tuple[NetworkSelector, KafkaConnectionManager]] = []

    def client(self, **options: Any) -> KafkaNetClient:
        """What kafka-python makes for itself unless it is given another function."""
        loop = NetworkSelector(**options)
        manager = KafkaConnectionManager(loop, **options)
        self._made.append((loop, manager))
        return KafkaNetClient(loop, manager)

    def give_up(self) -> None:
        """Let the attempt fail, from any thread: close its connections, and with them its wait for an answer."""
        for loop, manager in self._made:
            loop.call_soon_threadsafe(manager.close)

    def close(self) -> None:
        """Stop the thread, and close everything."""
        for loop, manager in self._made:
            loop.stop(timeout_ms=STOP_SECONDS * 1000)
            manager.close()
            loop.close()


class _ClosingSelector(selectors.DefaultSelector):
    """A selector that closes its sockets with itself: kafka-python forgets those whose connection failed."""

    def __init__(self) -> None:
        super().__init__()
        self._sockets: WeakSet[Any] = WeakSet()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._sockets.add(fileobj)
        return super().register(fileobj, events, data)

    def close(self) -> None:
        super().close()
        for socket in list(self._sockets):
            socket.close()
