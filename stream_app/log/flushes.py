"""What the pure code wants written: state records and messages, as the ordered stages of a flush."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NewType

TopicName = NewType("TopicName", str)
"""A topic without its prefix."""
PARTIALS = TopicName("partials")
DEADLETTERS = TopicName("deadletters")
FINALS = TopicName("finals")
OPEN = TopicName("open")


@dataclass(frozen=True)
class Write:
    """A state record: the new value of a key; None deletes it."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True)
class Output:
    """A message for one of our topics."""

    topic: TopicName
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Flush:
    """Everything that changed since the last flush.

    Each stage must be confirmed before the next begins, and the input acknowledged through `offset` only after the
    last. A crash between any two writes leaves a state that can be recovered. A failed write must end the
    process: the counts in memory are ahead of what was written.
    """

    offset: int
    stages: tuple[tuple[Write | Output, ...], ...]

    def __iter__(self) -> Iterator[Write | Output]:
        return (item for stage in self.stages for item in stage)

    def __bool__(self) -> bool:
        return any(self.stages)
