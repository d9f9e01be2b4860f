"""Waiting for another process to do something, for as long as it reasonably may take."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Return as soon as `condition` holds; fail if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds} seconds"
        time.sleep(0.02)
