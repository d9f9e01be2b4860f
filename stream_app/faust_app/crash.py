"""Ending the process when its counts may no longer be right.

Faust swallows exceptions in its hooks, and after one in an agent it goes on, past messages that were not processed. The
state in the changelog can always be recovered, so the safe answer to anything unexpected is to end the process at once
and start it again: by systemd, a container's restart policy, or whatever started the worker.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from protocols.errors import HearsayError

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
