"""What the connections of one listener share: an application, limits, and what they hold together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.http.messages import Application


@dataclass(frozen=True)
class Limits:
    """What clients may hold. A request must be complete, and an answer read, within `request_seconds`."""

    connections: int = 10_000
    held_bytes: int = 64 << 20  # bodies of all requests that are being read or answered
    head_bytes: int = 16 << 10
    request_seconds: float = 20.0
    idle_seconds: float = 75.0
    stop_seconds: float = 20.0


class Client(Protocol):
    """A connection, as its listener sees it. It is expired once its `deadline` has passed."""

    deadline: float

    @property
    def idle(self) -> bool: ...
    def expire(self) -> None: ...
    def close(self) -> None: ...


class Shared:
    """The open connections, and the bytes of bodies that are held for all of them."""

    verifies_clients = False
    knows_addresses = False

    def __init__(self, application: Application, limits: Limits) -> None:
        self.application = application
        self.limits = limits
        self.names: frozenset[str] | None = None  # what clients may call us; None: anything
        self.stopping = False
        self.time: Callable[[], float] = lambda: 0.0
        self.soon: Callable[[Callable[[], None]], Any] = lambda call: None
        self.clients: set[Client] = set()
        self._resting: dict[Client, None] = {}  # nobody waits for an answer there; the longest first
        self.held_bytes = 0

    def add(self, connection: Client) -> None:
        self.clients.add(connection)
        self.resting(connection)

    def discard(self, connection: Client) -> None:
        self.clients.discard(connection)
        self.occupied(connection)

    def resting(self, connection: Client) -> None:
        """Everything that was asked over a connection is answered now."""
        if connection in self.clients:
            self._resting[connection] = None

    def occupied(self, connection: Client) -> None:
        self._resting.pop(connection, None)

    def make_room(self) -> bool:
        """Whether there may be one more connection. The one that has asked nothing for the longest time leaves for it.

        Refusing new ones instead would let those who open many and ask nothing keep everybody else out.
        """
        if len(self.clients) < self.limits.connections:
            return True
        oldest = next(iter(self._resting), None)
        if oldest is None:
            return False
        self.discard(oldest)
        oldest.close()
        return True

    def hold(self, size: int) -> bool:
        """Take so many bytes of what all connections may hold together; False if they are not there."""
        if self.held_bytes + size > self.limits.held_bytes:
            return False
        self.held_bytes += size
        return True

    def release(self, size: int) -> None:
        self.held_bytes -= size

    @property
    def connections(self) -> int:
        return len(self.clients)
