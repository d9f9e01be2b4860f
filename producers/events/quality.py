"""The faults of events: how often each was found, and its first rows. Cells may name a person and are never shown."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from producers.files import EventFiles
from protocols.errors import ReplayError

SHOWN = 5


class Fault(StrEnum):
    """Everything that can be wrong with an event, as it is shown to users."""

    MALFORMED = "row that cannot be read"  # another number of columns
    NOBODY = "row without a person"
    BAD_TIME = "bad time"  # no time, or no zone
    SKIPPED = "local time that the clock skips"  # when it is put forward
    REPEATED = "local time that the clock repeats"  # when it is put back: it is not known which one is meant
    OUTSIDE = "time outside the survey"  # before its start, or after --until
    UNKNOWN_VALUE = "unknown value"  # not one of the survey's, and no number of its range, nor a position
    DUPLICATE = "duplicate"  # the same person, time and values again
    LATE = "late event"  # read after the end of its period plus the tolerance


@dataclass(frozen=True)
class Found:
    """How often a fault was found, and the first rows that have it."""

    count: int = 0
    first_rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Located:
    """How often a fault was found, and the file and line of the first ones."""

    count: int
    places: list[tuple[Path, int]]


@dataclass
class Quality:
    """The faults of the rows read so far."""

    files: EventFiles
    strict: bool = False
    rows: int = 0
    told_apart: int = 0
    """Local times that the clock repeats, of which one was chosen."""
    found: dict[Fault, Found] = field(default_factory=lambda: {fault: Found() for fault in Fault})
    _first: tuple[int, str] | None = None  # the first faulty row, and what is wrong with it

    def note(self, fault: Fault, rows: ArrayLike, detail: str = "") -> None:
        """Count a fault of these rows. `detail` may name a column, but never show a cell."""
        rows = np.asarray(rows, dtype=np.int64)
        if not len(rows):
            return
        known, first = self.found[fault], int(rows.min())
        if self._first is None or first < self._first[0]:
            self._first = first, f"{fault}{detail and f' ({detail})'}"
        firsts = sorted({*known.first_rows, *np.unique(rows)[:SHOWN].tolist()})[:SHOWN]
        self.found[fault] = Found(known.count + len(rows), tuple(firsts))

    def check(self) -> None:
        """If it is strict, refuse the first faulty row."""
        if self.strict and self._first is not None:
            row, fault = self._first
            raise ReplayError(
                f"{self.files.describe(row)}: {fault}",
                "correct the file, or replay without --strict and look at the summary",
            )

    def located(self) -> dict[Fault, Located]:
        """All faults, with their places."""
        places = self.files.places({row for found in self.found.values() for row in found.first_rows})
        return {
            fault: Located(found.count, [places[row] for row in found.first_rows])
            for fault, found in self.found.items()
        }

    def worst(self) -> tuple[Fault, float]:
        """The most frequent fault that loses events, and its share of the rows. Of duplicates, nothing is lost."""
        losing = {fault: found.count for fault, found in self.found.items() if fault is not Fault.DUPLICATE}
        fault = max(losing, key=losing.__getitem__)
        return fault, min(1.0, losing[fault] / max(1, self.rows))
