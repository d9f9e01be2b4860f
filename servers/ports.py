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
    try:
        check_port("127.0.0.1", port, "")
    except ServerError:
        return False
    return True


def check_port(host: str, port: int, hint: str) -> None:
    """Refuse a place where no server could listen now, and say why."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise ServerError(f"nobody can listen on port {port} of {host} now: {error.strerror}", hint) from None
