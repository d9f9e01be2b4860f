"""Running the app as a process: logs, signals, and an end that comes within seconds."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time

import faust
import structlog
import uvloop

from protocols.errors import ServerError
from servers.settings import KafkaSettings
from stream_app.counting.tokens import load_loops
from stream_app.faust_app.app import StreamApp
from stream_app.faust_app.options import WorkerOptions
from stream_app.kafka.topics import Topics, existing

LEAVE_SECONDS = 10.0
"""How long leaving may take, with the broker away for instance, before the process ends anyway."""
RETRY_SECONDS = 1.0

log = structlog.get_logger(__name__)


class Worker(faust.Worker):
    """Faust's worker, which ends when it is told to."""

    logger = logging.getLogger("faust.worker")

    def _schedule_shutdown(self, signal: signal.Signals) -> None:
        log.info("leaving", signal=signal.name)
        deadline = threading.Timer(LEAVE_SECONDS, os._exit, [0])
        deadline.daemon = True
        deadline.start()
        super()._schedule_shutdown(signal)


def wait_for_topics(kafka: KafkaSettings, prefix: str) -> Topics:
    """The topics on the cluster, as soon as it answers: a broker that is away may come back."""
    while True:
        try:
            return existing(kafka, prefix)
        except ServerError as error:
            log.warning("waiting for the broker", kafka=kafka.bootstrap, error=error.message)
            time.sleep(RETRY_SECONDS)


def run_worker(options: WorkerOptions) -> None:
    """Count until told to stop. Returns after SIGTERM or SIGINT; anything unexpected ends the process."""
    uvloop.install()
    load_loops()  # now, rather than while partitions wait for it
    app = StreamApp(options)
    worker = Worker(app, redirect_stdouts=False, override_logging=False, quiet=True)
    worker.spinner = None  # it would write between the lines of the log
    log.info("starting", kafka=options.kafka.bootstrap, app=options.topics.prefix, partitions=options.topics.partitions)
    worker.execute_from_commandline()
