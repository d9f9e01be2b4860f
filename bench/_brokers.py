"""A Kafka broker of its own for a benchmark."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings


@contextmanager
def broker() -> Iterator[tuple[KafkaSettings, Path]]:
    """How to reach the broker, and a directory that is removed with it."""
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-") as name:
        server = KafkaBroker(Path(name) / "kafka").start()
        try:
            yield KafkaSettings(bootstrap=server.bootstrap), Path(name)
        finally:
            server.stop()
