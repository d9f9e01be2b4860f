"""What was wrong with the events: how often, and where first. Never what the cell said: it may name a person."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from protocols.errors import ReplayError

SHOWN = 5


class Fault(StrEnum):
    """Everything that can be wrong with an event, in words for people."""

    MALFORMED = "row that cannot be read"  # another number of columns, or no person
    BAD_TIME = "bad time"  # not a time, without a zone, before the survey's start, or after the end
    UNKNOWN_VALUE = "unknown value"  # not among the survey's; the event's other attributes count
    DUPLICATE = "duplicate"  # the same person, time and values again
    LATE = "late event"  # its period had been reported when it came: the tolerance was too small


@dataclass(frozen=True)
class Found:
    """One fault: how often it was found, and the first lines that have it."""

    count: int = 0
    first_lines: tuple[int, ...] = ()


@dataclass
class Quality:
    """The faults of a file. Strict: the first one stops the replay."""

    strict: bool = False
    found: dict[Fault, Found] = field(default_factory=lambda: {fault: Found() for fault in Fault})

    def note(self, fault: Fault, lines: ArrayLike, detail: str = "") -> None:
        """These lines have this fault. `detail` may name a column, never a cell."""
        lines = np.asarray(lines, dtype=np.int64)
        if not len(lines):
            return
        if self.strict:
            raise ReplayError(
                f"line {lines.min()}: {fault}{detail and f' ({detail})'}",
                "correct the file, or replay without --strict and read the summary",
            )
        known = self.found[fault]
        first = sorted({*known.first_lines, *np.unique(lines)[:SHOWN].tolist()})[:SHOWN]
        self.found[fault] = Found(known.count + len(lines), tuple(first))
