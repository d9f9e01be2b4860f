"""Free ports for local servers."""

from __future__ import annotations

import random
import socket

from protocols.errors import ServerError

RANGE = range(20000, 32000)
"""Below the ephemeral ports: a client that retries a stopped server on an ephemeral port can connect to itself, and the
restarted server then cannot bind its port."""


def free_port() -> int:
    """A free loopback port, chosen at random so that two processes rarely choose the same."""
    for port in random.SystemRandom().sample(RANGE, 200):
        if is_free(port):
            return port
    raise ServerError("no free port was found between 20000 and 32000", "stop some servers")


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    try:
        check_port("127.0.0.1", port, "")
    except ServerError:
        return False
    return True


def check_port(host: str, port: int, hint: str) -> None:
    """Raise ServerError, with the cause, if no server could listen on this port now."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise ServerError(f"port {port} of {host} cannot be listened on: {error.strerror}", hint) from None
