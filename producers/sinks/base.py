"""What a producer needs of whatever takes its frames."""

from __future__ import annotations

from typing import Protocol


class Sink(Protocol):
    """Takes records in order. Nothing counts as delivered before `flush` has returned.

    The embedded app is one; so are `KafkaSink` and `DirectorySink`.
    """

    @property
    def partitions(self) -> int:
        """How many partitions records are routed to."""
        ...

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        """Take one record. May wait for room; keeps the order within a partition."""
        ...

    def flush(self) -> None:
        """Return once everything sent is safe where it belongs; else DeliveryError says what is not."""
        ...

    def close(self) -> None:
        """Let go of connections and files. Not a flush."""
        ...
