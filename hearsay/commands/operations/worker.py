"""`hearsay worker`: count reports from a Kafka cluster until it is stopped."""

from typing import Annotated

import typer

from hearsay.terminal import console


def worker(
    app: Annotated[
        str | None,
        typer.Option(help="Prefix of the topics and name of the consumer group, if not that of the settings."),
    ] = None,
    web_host: Annotated[str, typer.Option(help="Address of /live, /ready and /metrics.")] = "127.0.0.1",
    web_port: Annotated[
        int,
        typer.Option(
            metavar="PORT",
            help="Their port; each worker on a machine needs its own. 0: a free one; the log says which.",
            min=0,
            max=65535,
        ),
    ] = 6066,
    session: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="How long without a heartbeat until a worker counts as dead.", min=1),
    ] = 10.0,
    check_tokens: Annotated[
        bool, typer.Option(" /--no-check-tokens", help="Count second reports of a device in a period, too.")
    ] = True,
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
    import signal
    import sys

    from hearsay.serving.worker import making_views, serve_pages
    from servers.logs import configure_logs
    from servers.settings import load
    from stream_app.faust_app import WorkerOptions, run_worker, wait_for_topics

    settings = load()
    clock_key, presence_key = settings.clock_key_bytes(), settings.presence_key_bytes()
    configure_logs(log_level)
    # Also while it waits for a broker: the first process of a container ignores SIGTERM unless it handles it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    with serve_pages(web_host, web_port) as health:
        topics = wait_for_topics(settings.kafka, app or settings.kafka.prefix, health)
        options = WorkerOptions(settings.kafka, topics, clock_key, presence_key, session, check_tokens)
        with making_views(settings.kafka, topics, settings.sink_addresses, health):
            run_worker(options, health)
