"""`hearsay gateway` in front of a real broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from servers.kafka_broker import KafkaBroker
from stream_app.kafka import Topics
from tests.helpers.gateways import endure


@pytest.mark.long(part="kills")
def test_what_two_gateways_confirmed_is_counted_once_through_kills_of_everything(
    kafka: KafkaBroker, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """Failure would look like: a confirmed report that is not on the topic, or a final that differs from a recount."""
    topics = fresh_topics(partitions=3, merge_partitions=1)
    endure(kafka, topics, tmp_path, reports=1500, clients=10, kills=3)
