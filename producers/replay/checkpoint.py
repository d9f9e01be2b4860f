"""How far a replay has come, in a file of the workspace: the last reported period, and what was counted so far.

Repeating a replay is safe without it; the checkpoint only saves work. It belongs to some event files, one survey and
one set of options: its name is their hash (`EventFiles.identity`).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from protocols.errors import ReplayError
from servers.private_files import private_directory, read_limited, write_private


@dataclass(frozen=True)
class Totals:
    """What was counted in the periods reported so far."""

    through: int = -1
    periods: int = 0
    reports: int = 0
    repeats: int = 0
    ineligible: int = 0
    incomplete: int = 0
    duplicates: int = 0
    first_duplicates: tuple[int, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Totals:
        """The totals so far; zero if there is no file."""
        try:
            return cls(**json.loads(read_limited(path)))
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError):
            raise ReplayError(f"{path} is damaged", "remove it, and the files are replayed again") from None

    def write(self, path: Path) -> None:
        private_directory(path.parent)
        write_private(path, json.dumps(asdict(self)))
