"""How far a replay has come, kept beside the data: which periods are reported, and what was counted in them.

Running the same command again is always safe; the journal only saves the work. It belongs to one file, one survey and
one way of reading: its name is their hash, so that another file finds another journal.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from protocols.errors import ReplayError

SAMPLE_BYTES = 1 << 20


@dataclass(frozen=True)
class Totals:
    """What became of the periods reported so far."""

    through: int = -1
    periods: int = 0
    reports: int = 0
    repeats: int = 0
    passed: int = 0
    incomplete: int = 0
    duplicates: int = 0
    first_duplicates: tuple[int, ...] = ()


class Journal:
    """Totals in a small file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Totals:
        """Where to go on; the beginning if there is nothing."""
        if not self._path.exists():
            return Totals()
        try:
            return Totals(**json.loads(self._path.read_text()))
        except (ValueError, TypeError):
            raise ReplayError(f"{self._path} is damaged", "remove it: the file is then gone through again") from None

    def write(self, totals: Totals) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(totals)))
        unfinished.replace(self._path)


def identity(path: Path, *options: object) -> str:
    """A name for a file (its size, its first and last megabyte) and what is done with it."""
    size = path.stat().st_size
    digest = hashlib.sha256(repr((size, *options)).encode())
    with path.open("rb") as file:
        digest.update(file.read(SAMPLE_BYTES))
        file.seek(max(0, size - SAMPLE_BYTES))
        digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()[:32]
