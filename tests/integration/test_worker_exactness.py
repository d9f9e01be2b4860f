"""Kill -9 of any process at any moment: the finals are those of an offline recount."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from servers.kafka_broker import KafkaBroker
from stream_app.kafka import Topics
from tests.helpers.ordeal import Ordeal

MakeTopics = Callable[..., Topics]


@pytest.mark.long(part="kills")
def test_finals_are_exact_through_kills_pauses_stops_and_broker_crashes(
    kafka: KafkaBroker, fresh_topics: MakeTopics, tmp_path: Path
) -> None:
    """Failure would look like: a period whose counts are off by the reports of some flush, or a final that differs
    between two publications, or a rejected record that is counted twice or is missing from the dead letters."""
    topics = fresh_topics(partitions=6, merge_partitions=2)
    Ordeal(kafka, topics, tmp_path, seed=1).run(reports=120_000, periods=7, faults=5)
