"""How many connections the file descriptors of this process allow."""

from __future__ import annotations

import resource

from protocols.errors import ServerError

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
