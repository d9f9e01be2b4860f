"""Real servers on this machine for development and tests: a Kafka broker and a Redis, without containers."""

from hearsay.stack.broker import KafkaBroker
from hearsay.stack.servers import ServerStatus, Stack

__all__ = ["KafkaBroker", "ServerStatus", "Stack"]
