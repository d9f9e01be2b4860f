"""What an edge knows of its input: how far it was read, and what was counted. No person or value.

An edge over a directory has one sealed file, replaced as a whole. Owners of partitions tell each other.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter

from memo_store.sealing import Sealer
from producers.events.quality import Fault, Found, Quality
from producers.events.sending import Pipeline, Totals
from producers.files import BAD, EventFiles
from protocols.arrays import Whole
from protocols.errors import ReplayError, StoreError
from servers.private_files import write_private

SUMMED = ("reports", "repeats", "ineligible", "unlisted", "duplicates")


@dataclass(frozen=True)
class Counted:
    """What an edge has counted. `totals.through` is the last period that it has sent."""

    meaning: str = ""
    """A digest of what decides which reports events become."""
    totals: Totals = field(default_factory=Totals)
    rows: int = 0
    told_apart: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    late: dict[int, int] = field(default_factory=dict)
    """By period: the events that came too late."""

    def begun(self, events: Pipeline) -> Self:
        """The same, for events of one meaning; refuses those of another."""
        meaning = hashlib.sha256(repr(events.meaning).encode()).hexdigest()
        if self.meaning not in ("", meaning):
            raise ReplayError(
                "columns or rules are not those with which the open periods were begun",
                "write them as they were, or give the survey a new id and other data",
            )
        return replace(self, meaning=meaning)

    @property
    def quality(self) -> Quality:
        """To count the faults of the next events in, after the duplicates so far."""
        quality = Quality(EventFiles([]))
        quality.found[Fault.DUPLICATE] = Found(self.totals.duplicates)
        return quality

    def counting(self, quality: Quality, late: Whole) -> Self:
        """The same with the faults of some more rows, and the periods of late events."""
        found = {fault.name: found.count for fault, found in quality.found.items() if fault is not Fault.DUPLICATE}
        return replace(
            self,
            rows=self.rows + quality.rows,
            told_apart=self.told_apart + quality.told_apart,
            faults={name: self.faults.get(name, 0) + count for name, count in found.items()},
            late=dict(Counter(self.late) + Counter(late.tolist())),
        )


@dataclass(frozen=True)
class PartitionState(Counted):
    """One partition of an events topic. Whoever owns it next goes on from here, and reads open periods again."""

    position: int = 0
    """Records before this offset are counted."""
    restart: int = 0
    """The first record with an event of a period that was not sent."""
    ended: int = -1
    """The last period that has ended, by the events of this partition."""
    open: int | None = None
    """The first period with events that were not sent."""
    idle: bool = False
    """Whether nobody waits for it, because no event came for long."""
    cuts: dict[int, int] = field(default_factory=dict)
    """By period that is being sent: the offset from which on its events are late. What is sent again is the same."""


def next_closed(closed: int, partitions: Mapping[int, PartitionState], count: int) -> int:
    """The period through which all partitions send next; `closed` while one has not sent that, or has not ended more.

    A partition that nothing is known of holds all up. Periods without events are closed with the next one.

    >>> ended = {0: PartitionState(ended=5, open=2), 1: PartitionState(ended=3, open=1), 2: PartitionState(idle=True)}
    >>> next_closed(-1, ended, 3), next_closed(-1, ended, 4)
    (1, -1)
    """
    known = [partitions.get(number, PartitionState()) for number in range(count)]
    if any(state.totals.through < closed for state in known):
        return closed
    # If all are idle, nobody holds up the one that is furthest.
    ended = min((state.ended for state in known if not state.idle), default=max(state.ended for state in known))
    first = min((state.open for state in known if state.open is not None), default=ended)
    return max(closed, min(ended, max(first, closed + 1)))


@dataclass(frozen=True)
class EdgeState(Counted):
    """After some batches of some files. Whatever was done after it is done again, from here on."""

    watermark: int = int(BAD)
    before: int = int(BAD)
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The files that were read and are still there: their sizes and times of change."""
    reading: str | None = None
    batches: int = 0
    """How many batches were read of the file `reading`."""
    held: dict[int, tuple[int, int]] = field(default_factory=dict)
    """What is open (`Spool`)."""

    @classmethod
    def read(cls, path: Path, sealer: Sealer) -> "EdgeState":
        """The state in a file; a new one if there is none."""
        try:
            return TypeAdapter(cls).validate_json(sealer.unseal(path.name, path.read_bytes()))
        except FileNotFoundError:
            return cls()
        except (StoreError, ValueError):
            raise ReplayError(
                f"{path} is damaged, or was written under another key", "restore it and fleet.key from one copy"
            ) from None

    def write(self, path: Path, sealer: Sealer) -> None:
        write_private(path, sealer.seal(path.name, json.dumps(asdict(self)).encode()))


def together(parts: Iterable[Counted]) -> EdgeState:
    """What partitions have counted, as one edge: a period is sent when all of them have sent it."""
    parts, faults, late = list(parts), Counter[str](), Counter[int]()
    for part in parts:
        faults.update(part.faults)
        late.update(part.late)
    sums = {name: sum(getattr(part.totals, name) for part in parts) for name in SUMMED}
    through = min((part.totals.through for part in parts), default=-1)
    totals = Totals(through, max((part.totals.periods for part in parts), default=0), **sums)
    rows, told_apart = (sum(getattr(part, name) for part in parts) for name in ("rows", "told_apart"))
    return EdgeState(totals=totals, rows=rows, told_apart=told_apart, faults=dict(faults), late=dict(late))
