"""Real servers on this machine for development and tests: a Kafka broker and a Redis, without containers."""

from hearsay.stack.broker import KafkaBroker

__all__ = ["KafkaBroker"]
