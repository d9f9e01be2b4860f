"""Where frames go: Kafka, a directory to send later, or anything in this process that can count them."""

from producers.sinks.base import Sink

__all__ = ["Sink"]
