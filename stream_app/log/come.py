"""What a follower of published messages returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from protocols.errors import HearsayError
from protocols.survey import Survey
from stream_app.log.flushes import Output


@dataclass(frozen=True)
class Come:
    """What has come since the last look: surveys, and messages with the number of their log and their offset in it.

    A log is what has offsets of its own: a topic, or a data directory. `unread` are errors about records that are no
    surveys.
    """

    surveys: list[Survey] = field(default_factory=list)
    messages: list[tuple[int, int, Output]] = field(default_factory=list)
    unread: list[HearsayError] = field(default_factory=list)
