"""`hearsay gateway`: a Kafka cluster behind HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gateway.service import Holder, Surveys
from hearsay.serving.exposure import Exposure
from hearsay.serving.kafka_log import KafkaLog, Registry, wait_for_topics
from hearsay.serving.running import linked_figures, run
from servers.settings import Settings

LINKED = "Credentials let this gateway link the reports of a sender. These figures apply to whoever reads its memory:"


def serve_kafka(
    settings: Settings, prefix: str | None, exposure: Exposure, hold: int, hold_data: Path, say: Callable[[str], None]
) -> None:
    """Serve until SIGTERM or SIGINT."""
    exposure.check()
    key = settings.gateway_key_bytes() if exposure.credentials else b""
    topics = wait_for_topics(settings.kafka, prefix or settings.kafka.prefix)
    registry = Registry(settings.kafka, topics)
    if exposure.credentials:
        for line in (LINKED, *linked_figures(registry.all())):
            say(line)
    to = KafkaLog(settings.kafka, topics)
    run(
        exposure,
        Surveys(registry.lookup, registry.all),
        to,
        key,
        lambda address: say(f"Taking reports for {topics.reports} at {address}"),
        ready=lambda: to.connected,
        holder=Holder(hold_data, hold) if hold else None,
        beside=registry.follow,
    )
