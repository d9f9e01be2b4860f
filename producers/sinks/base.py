"""The interface of a sink."""

from typing import Protocol


class Sink(Protocol):
    """Delivers records in order. No record counts as delivered before `flush` has returned.

    Sinks are `KafkaSink`, `DirectorySink` and the embedded app.
    """

    @property
    def partitions(self) -> int:
        """The number of partitions that records are sent to."""
        ...

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        """Send one record. May block until there is room; keeps the order within a partition."""
        ...

    def flush(self) -> None:
        """Return once all sent records are stored. Raises DeliveryError if some are not."""
        ...

    def close(self) -> None:
        """Close connections and files, without a flush."""
        ...
