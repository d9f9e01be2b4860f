"""The pages of a worker: liveness, readiness and metrics. Another thread makes them than the one that counts.

It reads what the event loop writes, so whatever it iterates over is copied first.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from stream_app.faust_app.monitoring.metrics import REGISTRY

STUCK_SECONDS = 120.0
"""A worker that has done nothing for so long does not live. Compiling loops at the first start may take a minute."""

Page = tuple[int, str, bytes]  # status, content type, body


class Health:
    """Whether a worker lives and is ready. The worker calls `beat` all the time, and sets `ready` once it can tell.

    `merging` gives the partitions of the partials topic that it merges.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.ready: Callable[[], bool] = lambda: False
        self.merging: Callable[[], frozenset[int]] = frozenset
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


def _state(name: str, value: bool) -> Page:
    return 200 if value else 503, "application/json; charset=utf-8", json.dumps({name: value}).encode()
