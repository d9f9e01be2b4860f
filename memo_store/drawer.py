"""The drawer of an edge: one small private file with the keys of open periods.

Files, logs and copies that grow keep what was written to them for as long as their blocks last.
So what must be forgotten is sealed under a key of its period, and that key is in this file only.
It is forgotten by writing zeros over it, in place:

    header   MAGIC, the first period whose key is not forgotten, the drawer's id, a digest of its
             machine
    slots    of 40 bytes: a period plus 1, and its key; zeros in a slot that is free

A key is drawn from the system when its period is first asked for, never from another key. So a
copy of the file reads the periods that were open when it was made, and no later ones.

No write of more than 8 bytes is whole after a crash. So a key is on disk before its period is,
and is overwritten after its period was. A slot without a period may have what is left of a key:
whoever opens the file next overwrites that. Processes of one machine share the file, under a
lock.
"""

import fcntl
import hashlib
import os
import platform
import secrets
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from protocols.errors import StoreError
from servers.private_files import create_private, private_directory

MAGIC = b"drawer 1"
HEADER = struct.Struct("<8sQ16s8s")
FIRST_AT = 8
"""Where the header has the first period."""
SLOT = struct.Struct("<Q32s")
PERIOD = struct.Struct("<Q")
FREE = bytes(SLOT.size)
KEY_BYTES = 32
EARLIER = 1 << 63
"""Is added to a period that release 0.2 has begun: its commits are sealed under the fleet's key."""
MACHINE_IDS = Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")
LOCK_SECONDS = 60.0
"""More than any other process needs for a few writes."""
NAP_SECONDS = 0.01


@dataclass(frozen=True)
class PeriodKey:
    """The key of a period. `earlier`: release 0.2 has begun its reports."""

    key: bytes = field(repr=False)
    earlier: bool


def this_machine() -> list[str]:
    """What tells this machine from others: its id, if it has one, and its name, as in a container.

    The first is noted, and any is recognised: the next image of a container may have an id.
    """
    ids = [path.read_text().strip() for path in MACHINE_IDS if path.is_file()]
    return [id for id in ids if id] + [platform.node()]


class Drawer:
    """The drawer in a file. Every method locks it, and reads it anew."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, slots: int) -> "Drawer":
        """Make a drawer with free slots, unless there is one."""
        private_directory(path.parent)
        machine = _digest(this_machine()[0])
        header = HEADER.pack(MAGIC, 0, secrets.token_bytes(16), machine)
        create_private(path, header + slots * FREE)
        return cls(path)

    @cached_property
    def id(self) -> str:
        """Drawn when the drawer was made."""
        with self._opened() as file:
            return file.id

    @property
    def first(self) -> int:
        """The first period whose key is not forgotten."""
        with self._opened() as file:
            return file.first

    @property
    def periods(self) -> list[int]:
        """The periods that have a key, in order."""
        with self._opened() as file:
            return sorted(file.keys())

    def key(self, period: int) -> PeriodKey | None:
        """The key of a period, drawn at first use; None if it is forgotten."""
        with self._opened() as file:
            if period < file.first:
                return None
            known = file.keys().get(period)
            if known is None:
                known = PeriodKey(secrets.token_bytes(KEY_BYTES), earlier=False)
                file.put(period, known)
            return known

    def adopt(self, first: int, keys: Sequence[bytes]) -> None:
        """Take over the keys of release 0.2, of periods from `first` on. It may be repeated."""
        self.forget(first - 1)
        with self._opened() as file:
            known = file.keys()
            for period, key in enumerate(keys, first):
                if period >= file.first and period not in known:
                    file.put(period, PeriodKey(key, earlier=True))

    def forget(self, through: int) -> None:
        """Overwrite the keys of all periods up to this one."""
        with self._opened() as file:
            if through >= file.first:
                file.set_first(through + 1)
                file.erase_left()

    @contextmanager
    def _opened(self) -> Iterator["_File"]:
        try:
            descriptor = os.open(self.path, os.O_RDWR)
        except OSError as error:
            raise StoreError(
                f"the period keys in {self.path} cannot be read: {error.strerror}",
                "put that file back where it was; if it is lost, give the survey a new id",
            ) from None
        try:
            _lock(descriptor, self.path)
            file = _File(descriptor, self.path)
            file.erase_left()
            yield file
        finally:
            os.close(descriptor)


class _File:
    """A drawer that is open and locked."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        size = os.fstat(descriptor).st_size
        # A process that died while the file grew has left a part of a free slot.
        whole = size - size % SLOT.size
        self._content = os.pread(descriptor, whole, 0)
        if whole < HEADER.size:
            raise self._damaged()
        magic, first, id, machine = HEADER.unpack_from(self._content)
        self.first: int = first
        self.id: str = id.hex()
        if magic != MAGIC:
            raise self._damaged()
        if machine not in map(_digest, this_machine()):
            raise StoreError(
                f"the period keys in {path} belong to another machine: with forget_after, all "
                "processes of an edge run on one machine",
                "run the edge where that file was made; docs/edge.md says how to go on (Forgetting)",
            )

    def keys(self) -> dict[int, PeriodKey]:
        found: dict[int, PeriodKey] = {}
        for at in self._slots():
            number, key = SLOT.unpack_from(self._content, at)
            if number:
                found[_period(number)] = PeriodKey(key, bool(number & EARLIER))
        return found

    def put(self, period: int, key: PeriodKey) -> None:
        """Write a key, and then that it is there."""
        at = self._free()
        number = (period + 1) | (EARLIER if key.earlier else 0)
        self._write(at + PERIOD.size, key.key)
        self._write(at, PERIOD.pack(number))

    def set_first(self, period: int) -> None:
        self.first = period
        self._write(FIRST_AT, PERIOD.pack(period))

    def erase_left(self) -> None:
        """Overwrite slots of forgotten periods, and what a process that died has left."""
        for at in self._slots():
            slot = self._content[at : at + SLOT.size]
            (number,) = PERIOD.unpack_from(slot)
            forgotten = number != 0 and _period(number) < self.first
            if forgotten:
                self._write(at, PERIOD.pack(0))
            if forgotten or (number == 0 and slot != FREE):
                self._write(at + PERIOD.size, bytes(KEY_BYTES))

    def _slots(self) -> range:
        return range(HEADER.size, len(self._content), SLOT.size)

    def _free(self) -> int:
        """Where a free slot is. If there is none, the file grows: nothing in it is ever moved."""
        for at in self._slots():
            if self._content[at : at + SLOT.size] == FREE:
                return at
        end = len(self._content)
        self._write(end, max(1, len(self._slots())) * FREE)
        return end

    def _write(self, at: int, data: bytes) -> None:
        """Write in place; it is on disk when this returns."""
        if os.pwrite(self._descriptor, data, at) != len(data):
            raise StoreError(f"{self._path} could not be written", "free disk space, and start again")
        os.fsync(self._descriptor)
        self._content = self._content[:at] + data + self._content[at + len(data) :]

    def _damaged(self) -> StoreError:
        return StoreError(
            f"{self._path} is damaged, or is no file of period keys", "give the survey a new id, and other data"
        )


def _period(number: int) -> int:
    return (number & ~EARLIER) - 1


def _digest(machine: str) -> bytes:
    return hashlib.sha256(machine.encode()).digest()[:8]


def _lock(descriptor: int, path: Path) -> None:
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise StoreError(
                    f"another process has locked {path} for {LOCK_SECONDS:.0f} seconds", "end it, and start again"
                ) from None
        time.sleep(NAP_SECONDS)
