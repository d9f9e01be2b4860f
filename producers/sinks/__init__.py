"""Where reports are sent: to Kafka, or to a directory from which they are sent later."""

from producers.sinks.base import Sink
from producers.sinks.captures import read_capture
from producers.sinks.directory import DirectorySink, Sent, send_capture
from producers.sinks.kafka import KafkaSink

__all__ = ["DirectorySink", "KafkaSink", "Sent", "Sink", "read_capture", "send_capture"]
