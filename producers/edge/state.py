"""What an edge knows of its input: how far it was read, and what was counted. One sealed file, replaced as a whole."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from memo_store.sealing import Sealer
from producers.events.sending import Totals
from producers.files import BAD
from protocols.errors import ReplayError, StoreError
from servers.private_files import write_private


@dataclass(frozen=True)
class EdgeState:
    """After some batches of some files. Whatever was done after it is done again, from here on."""

    meaning: str = ""
    """A digest of what decides which reports events become."""
    watermark: int = int(BAD)
    before: int = int(BAD)
    totals: Totals = field(default_factory=Totals)
    rows: int = 0
    told_apart: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    late: dict[int, int] = field(default_factory=dict)
    """By period: the events that came too late."""
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
