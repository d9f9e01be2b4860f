"""Where frames go: Kafka, a directory to send later, or anything in this process that can count them."""

from producers.sinks.base import Sink
from producers.sinks.directory import DirectorySink, send_capture
from producers.sinks.kafka import KafkaSink

__all__ = ["DirectorySink", "KafkaSink", "Sink", "send_capture"]
