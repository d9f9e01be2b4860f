"""Stopping on Ctrl-C: work ends between two frames, with an error that names where to resume."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Stop = Callable[[], bool]
"""Whether the user has asked to stop; checked between frames."""


def never() -> bool:
    """Default: never stop."""
    return False


@contextmanager
def ctrl_c_asks() -> Iterator[Stop]:
    """Within this context, SIGINT and SIGTERM only set a flag; a second signal interrupts at once.

    For the main thread, around the whole run of a command.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
