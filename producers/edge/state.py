"""What an edge knows of its input: how far it was read, and what was counted. One sealed file, replaced as a whole."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from memo_store.sealing import Sealer
from producers.edge.progress import Counted
from producers.events.sending import Totals
from producers.files import BAD
from protocols.errors import ReplayError, StoreError
from servers.private_files import write_private

SUMMED = ("reports", "repeats", "ineligible", "unlisted", "duplicates")


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
