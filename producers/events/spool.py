"""What is open, on disk: events until their period is sent, and people's last cells.

On disk, so that memory does not grow with the number of events. Sealed under the fleet's key, because they are true
values: a file says how many events there are, and nothing else.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from memo_store.sealing import Sealer
from producers.events.choosing import Events, event_type
from protocols.arrays import Devices, Whole, Words
from protocols.errors import ReplayError, StoreError
from servers.private_files import lock_directory, open_private, private_directory, write_private

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
    """

    def __init__(self, directory: Path, attributes: int, sealer: Sealer, held: Held | None = None) -> None:
        self._lock = lock_directory(private_directory(directory))
        self._directory = directory
        self._sealer = sealer
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
            self._held[period] = self._append(self._path(period), some), count + len(some)
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
            yield np.concatenate(list(self._pieces(path)))
            return
        paths = [path.with_suffix(f".{i}") for i in range(buckets)]
        for events in self._pieces(path):
            dealt = scatter(events["device"]) % np.uint64(buckets)
            for i in np.unique(dealt).tolist():
                self._append(paths[i], events[dealt == i])
        for part in filter(Path.exists, paths):
            yield np.concatenate(list(self._pieces(part)))
            part.unlink()

    def drop(self, period: int) -> None:
        """Remove the events of a period."""
        self._held.pop(period, None)
        self._path(period).unlink(missing_ok=True)

    def keep_cells(self, period: int, cells: bytes) -> None:
        """Store people's last cells after a period. Those after others stay until `drop_cells`."""
        write_private(self._cells(period), self._sealer.seal(self._cells(period).name, cells))

    def cells(self, period: int) -> bytes:
        """Raises ReplayError if they are missing or damaged."""
        path = self._cells(period)
        try:
            return self._sealer.unseal(path.name, path.read_bytes())
        except (OSError, StoreError):
            raise _damaged(path) from None

    def drop_cells(self, but: int | None = None) -> None:
        for path in self._directory.glob("*.cells"):
            if but is None or path != self._cells(but):
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
            os.truncate(path, size)
        for path in self._directory.iterdir():
            if path not in kept and path.suffix != ".cells":
                path.unlink()

    def _append(self, path: Path, events: Events) -> int:
        """Seal events at the end of a file; how many bytes it has then."""
        with open_private(path, "ab") as file:
            sealed = self._sealer.seal(f"{path.name} {file.tell()}", events.tobytes())
            file.write(len(sealed).to_bytes(LENGTH, "little") + sealed)
            return int(file.tell())

    def _pieces(self, path: Path) -> Iterator[Events]:
        with path.open("rb") as file:
            at = 0
            while length := file.read(LENGTH):
                try:
                    piece = self._sealer.unseal(f"{path.name} {at}", file.read(int.from_bytes(length, "little")))
                except StoreError:
                    raise _damaged(path) from None
                yield np.frombuffer(piece, self._dtype)
                at = file.tell()

    def _path(self, period: int) -> Path:
        return self._directory / f"{period}.events"

    def _cells(self, period: int) -> Path:
        return self._directory / f"{period}.cells"


def _damaged(path: Path) -> ReplayError:
    return ReplayError(
        f"{path} is missing or damaged, or was written by another fleet",
        f"restore it from a copy; without one, remove {path.parent} and read the events of open periods again",
    )
