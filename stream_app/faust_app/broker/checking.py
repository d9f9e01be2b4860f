"""Comparing a cluster with what it must be: the settings of its topics, and the logs with the state."""

from __future__ import annotations

from servers.settings import KafkaSettings
from stream_app.faust_app.broker.acceptance import stuck_partitions
from stream_app.kafka.topics import Mismatch, Topics, check
from stream_app.log.marks import FaultKind

READ_ON = "workers do not read it on, and no period of it is closed: run `hearsay recover`"


def check_cluster(kafka: KafkaSettings, topics: Topics) -> list[Mismatch]:
    """Every setting of the topics that differs from the required one, and every log that is not the one counted."""
    mismatches = check(kafka, topics)
    if any(mismatch.found == "missing" for mismatch in mismatches):
        return mismatches
    return mismatches + [
        Mismatch(
            stuck.topic,
            f"the log of partition {stuck.partition}",
            f"not the one that was counted ({stuck.fault.what})",
            "the one that its state contains",
            READ_ON,
        )
        for stuck in stuck_partitions(kafka, topics)
        if stuck.fault.kind is not FaultKind.PARTITIONS  # among the settings already
    ]
