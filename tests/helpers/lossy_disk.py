"""A disk that fails to write: as Linux shows it, and what is left of it when the power goes.

A sync that fails is told once. What it could not write can still be read, and no later sync writes it: the kernel takes
it for written. Only when the machine starts again is it gone.
"""

import errno
import os
import stat
from pathlib import Path

import pytest


class LossyDisk:
    """Of a process whose files are synced with `os.fsync`. Directories are always synced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failures = 0
        """How many of the next syncs fail."""
        self._sync = os.fsync
        self._written: dict[int, int] = {}  # by inode: up to which byte it is on disk
        self._dropped: dict[int, list[tuple[int, int]]] = {}  # by inode: what no sync writes any more
        self._held: list[int] = []  # files that dropped something: their inodes must not be those of later files
        monkeypatch.setattr(os, "fsync", self._fsync)

    def _fsync(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            begin = self._written.get(status.st_ino, 0)
            self._written[status.st_ino] = status.st_size
            if self.failures:
                self.failures -= 1
                self._held.append(os.dup(descriptor))
                self._dropped.setdefault(status.st_ino, []).append((begin, status.st_size))
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._sync(descriptor)

    def lose_power(self, *files: Path) -> None:
        """Leave of these files what is on disk."""
        for file in files:
            inode = file.stat().st_ino
            content = bytearray(file.read_bytes())
            for begin, end in self._dropped.get(inode, ()):
                content[begin:end] = bytes(end - begin)
            with file.open("r+b") as opened:
                opened.write(content[: self._written.get(inode, 0)])
                opened.truncate()

    def close(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)
