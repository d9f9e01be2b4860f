"""Ports for servers that must come back on the port they had."""

from __future__ import annotations

import random
import socket

from protocols.errors import ServerError

RANGE = range(20000, 32000)
"""Below the ports that systems give to outgoing connections: a client that keeps trying to reach a dead server on one
of those can end up connected to itself, and the server cannot have its port back."""


def free_port() -> int:
    """A loopback port nobody listens on now, chosen at random so that two processes rarely choose the same."""
    for port in random.SystemRandom().sample(RANGE, 200):
        if is_free(port):
            return port
    raise ServerError("no free port was found between 20000 and 32000", "close some servers")


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
