"""Offsets of a log that hold no record to apply."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stream_app.log.marks import NO_EPOCH


class Why(StrEnum):
    MARKER = "marker"  # the broker's own record that ends a transaction
    TOO_LARGE = "too-large"  # a batch that takes more memory than is allowed
    UNDECODABLE = "undecodable"  # a batch whose records cannot be read
    ABSENT = "absent"  # the log has no record there: it was compacted, or damaged


@dataclass(frozen=True)
class Skipped:
    """The offsets from `first` to `last` of a log, and why there is no record to apply."""

    first: int
    last: int
    why: Why
    epoch: int = NO_EPOCH
