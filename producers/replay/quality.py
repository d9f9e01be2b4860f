"""The faults of events: how often each was found, and its first lines. Cells may name a person and are never shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from protocols.errors import ReplayError

SHOWN = 5


class Fault(StrEnum):
    """Everything that can be wrong with an event, as it is shown to users."""

    MALFORMED = "row that cannot be read"  # another number of columns, or no person
    BAD_TIME = "bad time"  # no time, no zone, before the survey's start, or after --until
    UNKNOWN_VALUE = "unknown value"  # not one of the survey's; the event's other attributes are used
    DUPLICATE = "duplicate"  # the same person, time and values again
    LATE = "late event"  # read after the end of its period plus the tolerance


@dataclass(frozen=True)
class Found:
    """How often a fault was found, and the first lines that have it."""

    count: int = 0
    first_lines: tuple[int, ...] = ()


@dataclass
class Quality:
    """The faults of a file. If `strict`, the first one stops the replay."""

    strict: bool = False
    found: dict[Fault, Found] = field(default_factory=lambda: {fault: Found() for fault in Fault})

    def note(self, fault: Fault, lines: ArrayLike, detail: str = "") -> None:
        """Count a fault on these lines. `detail` may name a column, but never show a cell."""
        lines = np.asarray(lines, dtype=np.int64)
        if not len(lines):
            return
        if self.strict:
            raise ReplayError(
                f"line {lines.min()}: {fault}{detail and f' ({detail})'}",
                "correct the file, or replay without --strict and look at the summary",
            )
        known = self.found[fault]
        first = sorted({*known.first_lines, *np.unique(lines)[:SHOWN].tolist()})[:SHOWN]
        self.found[fault] = Found(known.count + len(lines), tuple(first))
