"""`hearsay gateway`: a Kafka cluster behind HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gateway.http import most_connections
from gateway.service import Holder, Surveys
from hearsay.serving.exposure import Exposure
from hearsay.serving.kafka_log import KafkaLog, wait_for_surveys
from hearsay.serving.running import linked_figures, run
from servers.settings import Settings


def serve_kafka(
    settings: Settings, prefix: str | None, exposure: Exposure, hold: int, hold_data: Path, say: Callable[[str], None]
) -> None:
    """Serve until SIGTERM or SIGINT."""
    exposure.check()
    connections = most_connections()
    key = settings.gateway_key_bytes() if exposure.credentials else b""
    topics, registry = wait_for_surveys(settings.kafka, prefix or settings.kafka.prefix)
    if exposure.credentials:
        for line in linked_figures(registry.all()):
            say(line)
    to = KafkaLog(settings.kafka, topics)
    run(
        exposure,
        Surveys(registry.lookup, registry.all),
        to,
        key,
        lambda address: say(f"Taking reports for {topics.reports} at {address}"),
        connections,
        ready=lambda: to.connected,
        holder=Holder(hold_data, hold) if hold else None,
        beside=registry.follow,
    )
