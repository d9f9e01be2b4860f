"""Ending the process when its counts may no longer be right, or when it is stuck.

Faust swallows exceptions in its hooks, and after one in an agent it goes on, past messages that were not processed. The
state in the changelog can always be recovered, so the safe answer to anything unexpected is to end the process at once
and start it again: by systemd, a container's restart policy, or whatever started the worker.

Faust assigns partitions and recovers state over connections that may break at any moment. If it is ever stuck, only a
restart helps: a watchdog ends the process if recovery makes no progress although the broker answers.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import structlog

from protocols.errors import HearsayError, ServerError

EXIT = 70  # EX_SOFTWARE

log = structlog.get_logger(__name__)


@contextmanager
def fatal(doing: str) -> Iterator[None]:
    """Any exception inside ends the process, except a cancellation."""
    try:
        yield
    except Exception as error:
        expected = isinstance(error, HearsayError)
        log.critical("this worker ends; start it again", doing=doing, error=str(error), exc_info=not expected)
        logging.shutdown()
        os._exit(EXIT)


CHECK_SECONDS = 5.0
"""How often to check; also how long a broker may take to answer before it counts as unavailable."""
MAX_UNCHANGED = 30
"""How many checks in a row may find no progress. A group waits up to a minute for members that do not come back."""


async def run_watchdog(progress: Callable[[], object], broker_answers: Callable[[], Awaitable[object]]) -> None:
    """End this process if `progress` gives the same value too often in a row; None if no progress is due.

    None is due while the broker does not answer. Checks are counted, not seconds, as a paused process makes none.
    """
    last: object = None
    unchanged = 0
    with fatal("waiting for partitions and their state"):
        while unchanged < MAX_UNCHANGED:
            await asyncio.sleep(CHECK_SECONDS)
            now = None
            with suppress(TimeoutError):
                await asyncio.wait_for(broker_answers(), CHECK_SECONDS)
                now = progress()
            unchanged = unchanged + 1 if now is not None and now == last else 0
            last = now
        raise ServerError(
            f"partitions were not assigned or their state not recovered for {MAX_UNCHANGED * CHECK_SECONDS:.0f} s, "
            "although the broker answers",
            "start the worker again; if that does not help, look at the broker's log",
        )
