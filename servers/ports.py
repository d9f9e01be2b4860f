"""Addresses of this machine, and free ports for local servers."""

import random
import socket
from ipaddress import ip_address

from protocols.errors import ServerError

RANGE = range(20000, 32000)
"""Below the ephemeral ports: a client that retries a stopped server on an ephemeral port can connect to itself, and the
restarted server then cannot bind its port."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_given: set[int] = set()


def free_port() -> int:
    """A free loopback port: at random, so that two processes rarely choose the same; in one process, never the same.

    Somebody who is given one listens on it only later, and may stop and start again.

    >>> free_port() != free_port()
    True
    """
    others = [port for port in RANGE if port not in _given]
    for port in random.SystemRandom().sample(others, min(200, len(others))):
        if is_free(port):
            _given.add(port)
            return port
    raise ServerError("no free port was found between 20000 and 32000", "stop some servers")


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
