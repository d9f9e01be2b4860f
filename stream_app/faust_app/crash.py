"""Ending the process when it can no longer know that it counts right.

Faust swallows exceptions in its hooks and carries on after those in agents, past messages that were not processed. The
state in the log is always one to recover from, so the safe answer to anything unexpected is to end at once and be
started again: by systemd, a container's restart policy, or whoever started the worker.
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
    """Whatever goes wrong inside ends the process. Being cancelled is not going wrong."""
    try:
        yield
    except Exception as error:
        expected = isinstance(error, HearsayError)
        log.critical("this worker ends; start it again", doing=doing, error=str(error), exc_info=not expected)
        logging.shutdown()
        os._exit(EXIT)
