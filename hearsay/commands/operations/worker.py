"""`hearsay worker`: count reports from a Kafka cluster until it is stopped."""

import signal
import sys
from typing import Annotated

import typer

from hearsay.terminal import console


def worker(
    app: str | None = None,
    web_host: str = "127.0.0.1",
    web_port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535)] = 6066,
    session: Annotated[float, typer.Option(metavar="SECONDS", min=1)] = 10.0,
    check_tokens: Annotated[bool, typer.Option(" /--no-check-tokens")] = True,
    log_level: console.LogLevel = "INFO",
) -> None:
    """Count reports from Kafka and publish results, until it is stopped.

    Workers share the partitions; start as many as you like. A worker may be killed at any moment: the others, or the
    next one started, resume from the stored state, and every report counts once. Run it under a supervisor that
    restarts it.

    Needs a Kafka cluster (HEARSAY_KAFKA_BOOTSTRAP), its topics (hearsay topics create) and the operator's clock key
    (HEARSAY_CLOCK_KEY). `hearsay stack up` provides all three on this machine. HEARSAY_SINKS names further sinks to
    write results to (hearsay sinks list), separated by spaces.

    Example: hearsay worker --web-port 6067
    """
    from servers.memory import keep_memory

    keep_memory()  # before the packages that make threads

    from hearsay.serving.worker import Merged, note, note_refused, serve_pages
    from servers.logs import configure_logs
    from servers.settings import load
    from stream_app.faust_app import WorkerOptions, run_worker, wait_for_topics
    from views.following import TOPICS, following

    settings = load()
    clock_key, presence_key = settings.clock_key_bytes(), settings.presence_key_bytes()
    configure_logs(log_level)
    # Also while it waits for a broker: the first process of a container ignores SIGTERM unless it handles it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    with serve_pages(web_host, web_port) as health:
        topics = wait_for_topics(settings.kafka, app or settings.kafka.prefix, health)
        options = WorkerOptions(settings.kafka, topics, clock_key, presence_key, session, check_tokens)
        sinks = [TOPICS, *settings.sinks.split()]

        def mine() -> Merged:
            return Merged(topics.merge_partitions, health.merging())

        with following(settings.kafka, topics, sinks, mine, note, note_refused):
            run_worker(options, health)
