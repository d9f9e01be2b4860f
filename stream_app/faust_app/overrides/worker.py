"""Faust's worker: the process that runs the app until a signal ends it."""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any

import faust
import structlog

from stream_app.faust_app.overrides.app import FaustApp

LEAVE_SECONDS = 10.0
"""How long leaving may take, with the broker away for instance, before the process ends anyway."""

log = structlog.get_logger(__name__)


class DeadlineWorker(faust.Worker):
    """Faust's worker, which ends within a deadline of the signal that asks it to.

    Leaving the group, a last flush and closing connections need the broker: Faust would wait for it without end.
    """

    logger = logging.getLogger("faust.worker")

    def __init__(self, app: FaustApp, **options: Any) -> None:
        super().__init__(app, **options)
        self.spinner = None  # it would write between the lines of the log

    def _schedule_shutdown(self, signal: signal.Signals) -> None:
        log.info("leaving", signal=signal.name)
        deadline = threading.Timer(LEAVE_SECONDS, os._exit, [0])
        deadline.daemon = True
        deadline.start()
        super()._schedule_shutdown(signal)


def run_until_signalled(app: FaustApp) -> None:
    """Run an app in this process, until SIGTERM or SIGINT."""
    DeadlineWorker(app, redirect_stdouts=False, override_logging=False, quiet=True).execute_from_commandline()
