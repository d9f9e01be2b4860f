"""Waiting for another process to do something, for as long as it reasonably may take."""

import time
from collections.abc import Callable

from protocols.errors import ServerUnavailable

PATIENCE_SECONDS = 120.0
POLL_SECONDS, MOST_POLL_SECONDS = 0.02, 0.5
PAUSES = 3
"""Nobody looks again for so many times as long as a look takes: looking at topics costs whom one waits for, too."""


def eventually(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Return as soon as `condition` holds; fail if it does not within `seconds`.

    A server that does not answer just now is asked again.
    """
    began = looked = time.monotonic()
    while (found := _look(condition)) is not None:
        now = time.monotonic()
        assert now < began + seconds, f"still not so after {seconds:.0f} seconds{found}"
        time.sleep(min(max(POLL_SECONDS, PAUSES * (now - looked)), MOST_POLL_SECONDS))
        looked = time.monotonic()


def _look(condition: Callable[[], bool]) -> str | None:
    """None if it holds; otherwise what is to be said about it."""
    try:
        return None if condition() else ""
    except ServerUnavailable as error:
        return f": {error}"
