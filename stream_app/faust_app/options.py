"""The options of a worker."""

from __future__ import annotations

from dataclasses import dataclass

from servers.settings import KafkaSettings
from stream_app.kafka.topics import Topics


@dataclass(frozen=True)
class WorkerOptions:
    """How a worker runs. `check_tokens=False` is for senders that are known never to repeat."""

    kafka: KafkaSettings
    topics: Topics
    clock_key: bytes
    presence_key: bytes
    session_seconds: float = 10.0
    check_tokens: bool = True
