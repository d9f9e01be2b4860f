"""What is open, on disk: events until their period is sent, and people's last cells.

On disk, so that memory does not grow with the number of events. Sealed, because they are true values: a file says how
many events there are, and nothing else. A block of a removed file stays on disk for as long as nobody writes there. So
if the survey forgets its periods, each is sealed under its own key, which is forgotten (`memo_store/drawer.py`). What
release 0.2 has written is sealed under the fleet's key, for life: it is overwritten before it is removed.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from memo_store.sealing import Sealer
from producers.events.choosing import Events, event_type
from protocols.arrays import Devices, Whole, Words
from protocols.errors import ReplayError, StoreError
from servers.private_files import (
    discard,
    lock_directory,
    open_private,
    overwrite,
    private_directory,
    write_private,
)

AT_ONCE = 1 << 19
"""Events in memory at a time."""
SPREAD = 1.25
"""Buckets have different sizes; this factor keeps nearly all of them below AT_ONCE."""
LENGTH = 4  # bytes in front of each sealed piece

Held = Mapping[int, tuple[int, int]]
"""By open period: the bytes of its file, and its events."""


class Spool:
    """One file per open period in a private directory.

    What is there when it is opened, and is not in `held`, is removed: pieces that were written after it was noted how
    far the input was read, and are read again. The directory is locked meanwhile, because two processes would take each
    other's events. Raises BlockingIOError if another process holds the lock.

    `of_period` gives what a period is sealed with, if periods are forgotten; otherwise all are sealed with `sealer`.
    """

    def __init__(
        self,
        directory: Path,
        attributes: int,
        sealer: Sealer,
        held: Held | None = None,
        of_period: Callable[[int], Sealer] | None = None,
    ) -> None:
        self._lock = lock_directory(private_directory(directory))
        self._directory = directory
        self._sealer = sealer
        self._of_period = of_period
        self._lasting: set[Path] = set()  # files with pieces under a key that is never forgotten
        self._dtype = event_type(attributes)
        self._held = dict(held or {})
        self._unsynced: set[int] = set()
        try:
            self._restore()
        except ReplayError:
            self.close()
            raise

    @property
    def periods(self) -> list[int]:
        """The periods that have events, in order."""
        return sorted(self._held)

    def add(self, events: Events, periods: Whole) -> None:
        """Add events to the files of their periods."""
        found = np.unique(periods).tolist()
        for period in found:
            some = events if len(found) == 1 else events[periods == period]
            _, count = self._held.get(period, (0, 0))
            self._held[period] = self._append(self._path(period), period, some), count + len(some)
        self._unsynced |= set(found)

    def sync(self) -> Held:
        """What is held, when all of it is on disk."""
        for period in self._unsynced & self._held.keys():
            with self._path(period).open("rb") as file:
                os.fsync(file.fileno())
        self._unsynced = set()
        return self._held

    def read(self, period: int, scatter: Callable[[Devices], Words]) -> Iterator[Events]:
        """All events of a period, in portions that each hold all events of some devices.

        `scatter` gives a number per device, which decides its portion. It should differ from period to period, so that
        portions do not hold the same devices every time.
        """
        _, count = self._held[period]
        path = self._path(period)
        buckets = 1 if count <= AT_ONCE else int(SPREAD * count / AT_ONCE) + 1
        if buckets == 1:
            yield np.concatenate(list(self._pieces(path, period)))
            return
        paths = [path.with_suffix(f".{i}") for i in range(buckets)]
        for events in self._pieces(path, period):
            dealt = scatter(events["device"]) % np.uint64(buckets)
            for i in np.unique(dealt).tolist():
                self._append(paths[i], period, events[dealt == i])
        for part in filter(Path.exists, paths):
            yield np.concatenate(list(self._pieces(part, period)))
            part.unlink()

    def drop(self, period: int) -> None:
        """Remove the events of a period."""
        self._held.pop(period, None)
        self._remove(self._path(period))

    def keep_cells(self, period: int, cells: bytes) -> None:
        """Store people's last cells after a period. Those after others stay until `drop_cells`."""
        path = self._cells(period)
        write_private(path, self._sealer_of(period).seal(path.name, cells))

    def cells(self, period: int) -> bytes:
        """Raises ReplayError if they are missing or damaged."""
        path = self._cells(period)
        try:
            sealed = path.read_bytes()
        except OSError:
            raise _damaged(path) from None
        return self._unsealed(path, period, path.name, sealed)

    def drop_cells(self, but: int | None = None) -> None:
        for path in self._directory.glob("*.cells"):
            if but is None or path != self._cells(but):
                if self._of_period is not None:  # release 0.2 may have written it
                    overwrite(path)
                path.unlink()

    def close(self) -> None:
        """Let others open it."""
        os.close(self._lock)

    def abandon(self) -> None:
        """Remove all events, and let others open it."""
        for period in self.periods:
            self.drop(period)
        self.close()

    def _restore(self) -> None:
        kept = {self._path(period): size for period, (size, _) in self._held.items()}
        for path, size in kept.items():
            if not path.exists() or path.stat().st_size < size:
                raise _damaged(path)
            if self._of_period is not None:
                overwrite(path, size)
                self._lasting.add(path)
            os.truncate(path, size)
        for path in self._directory.iterdir():
            if path not in kept and path.suffix != ".cells":
                if self._of_period is not None:
                    self._lasting.add(path)
                self._remove(path)

    def _remove(self, path: Path) -> None:
        """Remove a file. One that an earlier process has begun is overwritten: release 0.2 may have been that."""
        if path in self._lasting:
            discard(path)
            self._lasting.remove(path)
        path.unlink(missing_ok=True)

    def _append(self, path: Path, period: int, events: Events) -> int:
        """Seal events at the end of a file; how many bytes it has then."""
        with open_private(path, "ab") as file:
            sealed = self._sealer_of(period).seal(f"{path.name} {file.tell()}", events.tobytes())
            file.write(len(sealed).to_bytes(LENGTH, "little") + sealed)
            return int(file.tell())

    def _pieces(self, path: Path, period: int) -> Iterator[Events]:
        with path.open("rb") as file:
            at = 0
            while length := file.read(LENGTH):
                sealed = file.read(int.from_bytes(length, "little"))
                piece = self._unsealed(path, period, f"{path.name} {at}", sealed)
                yield np.frombuffer(piece, self._dtype)
                at = file.tell()

    def _sealer_of(self, period: int) -> Sealer:
        return self._sealer if self._of_period is None else self._of_period(period)

    def _unsealed(self, path: Path, period: int, place: str, sealed: bytes) -> bytes:
        """What was sealed in a place of a period's file; by release 0.2, under the fleet's key in any case."""
        own = self._sealer_of(period)
        for sealer in (own, self._sealer):
            with suppress(StoreError):
                return sealer.unseal(place, sealed)
        raise _damaged(path)

    def _path(self, period: int) -> Path:
        return self._directory / f"{period}.events"

    def _cells(self, period: int) -> Path:
        return self._directory / f"{period}.cells"


def _damaged(path: Path) -> ReplayError:
    return ReplayError(
        f"{path} is missing or damaged, or was written by another fleet",
        f"restore it from a copy; without one, remove {path.parent} and read the events of open periods again",
    )
