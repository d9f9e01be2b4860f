"""Waiting for another process to do something, for as long as it reasonably may take."""

import time
from collections.abc import Callable

from protocols.errors import ServerUnavailable


def eventually(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Return as soon as `condition` holds; fail if it does not within `seconds`.

    A server that does not answer just now is asked again.
    """
    deadline = time.monotonic() + seconds
    while (found := _look(condition)) is not None:
        assert time.monotonic() < deadline, f"still not so after {seconds} seconds{found}"
        time.sleep(0.02)


def _look(condition: Callable[[], bool]) -> str | None:
    """None if it holds; otherwise what is to be said about it."""
    try:
        return None if condition() else ""
    except ServerUnavailable as error:
        return f": {error}"
