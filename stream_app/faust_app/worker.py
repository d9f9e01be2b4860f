"""Running the app as a process, once the cluster has its topics."""

from __future__ import annotations

import time

import faust
import structlog
import uvloop

from protocols.errors import ServerError
from servers.settings import KafkaSettings
from stream_app.counting.tables.tokens import load_loops
from stream_app.faust_app.app import StreamApp
from stream_app.faust_app.monitoring.web import Health
from stream_app.faust_app.options import WorkerOptions
from stream_app.faust_app.overrides.batches import BatchLimits, account_for_all_offsets
from stream_app.kafka.roles import check_rights, roles
from stream_app.kafka.topics import Topics, check_partitions, existing

RETRY_SECONDS = 1.0

log = structlog.get_logger(__name__)


def wait_for_topics(kafka: KafkaSettings, prefix: str, health: Health) -> Topics:
    """The topics on the cluster; waits until a broker answers."""
    while True:
        health.beat()
        try:
            check_rights(kafka, next(role for role in roles(Topics(prefix)) if role.name == "worker"))
            topics = existing(kafka, prefix)
            check_partitions(kafka, topics)
            return topics
        except ServerError as error:
            log.warning("waiting for the broker", kafka=kafka.bootstrap, error=error.message)
            time.sleep(RETRY_SECONDS)


def run_worker(options: WorkerOptions, health: Health) -> None:
    """Count until SIGTERM or SIGINT. Any unexpected error ends the process."""
    uvloop.install()
    load_loops()  # before partitions are assigned and wait for it
    account_for_all_offsets(BatchLimits(options.kafka.max_batch_bytes, options.topics.reports))
    log.info("starting", kafka=options.kafka.bootstrap, app=options.topics.prefix, partitions=options.topics.partitions)
    app = StreamApp(options, health)
    worker = faust.Worker(app.faust_app, redirect_stdouts=False, override_logging=False, quiet=True)
    worker.spinner = None  # it would write between the lines of the log
    worker.execute_from_commandline()
