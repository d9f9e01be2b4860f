"""Where reports are sent: to Kafka, or to a directory from which they are sent later."""

from typing import TYPE_CHECKING

from producers.sinks.base import Sink
from producers.sinks.directory import DirectorySink, Sent, read_capture, send_capture

if TYPE_CHECKING:
    from producers.sinks.kafka import KafkaSink
else:

    def __getattr__(name: str) -> object:
        """The sink for Kafka is imported when it is used: its client takes time that other sinks do not need."""
        if name != "KafkaSink":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from producers.sinks.kafka import KafkaSink

        return KafkaSink
