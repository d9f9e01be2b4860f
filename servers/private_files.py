"""Files and directories that only their owner may read, whatever the umask; written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import IO, Any

UMASK = 0o077
"""The umask under which servers are started, so that what they write is private too."""


def private_directory(path: Path) -> Path:
    """A directory, made private if there is none; one that exists stays as it is."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def open_private(path: Path, mode: str) -> IO[Any]:
    """Open a file as `open` does; one that is made is private."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))


def write_private(path: Path, data: bytes | str) -> None:
    """Replace a file as a whole; it is on disk when this returns."""
    with _draft(path, data) as draft:
        draft.replace(path)
    sync_directory(path.parent)


def create_private(path: Path, data: bytes | str) -> None:
    """Make a file as a whole unless there is one: of processes that race, one makes it."""
    with _draft(path, data) as draft, suppress(FileExistsError):
        os.link(draft, path)  # unlike a rename, a link never replaces an existing file
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Put the names of new files in a directory on disk."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _draft(path: Path, data: bytes | str) -> Iterator[Path]:
    """A file on disk beside `path` with its future content; gone at the end of the block."""
    descriptor, name = mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)
