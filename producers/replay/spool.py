"""Events until their period ends: on disk, so that memory does not grow with their number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from producers.replay.choosing import Events, event_type
from protocols.arrays import Devices, Whole, Words
from servers.private_files import lock_directory, open_private, private_directory

AT_ONCE = 1 << 19
"""Events in memory at a time."""
SPREAD = 1.25
"""Buckets have different sizes; this factor keeps nearly all of them below AT_ONCE."""


class Spool:
    """One file per open period in a private directory, which is emptied when the spool is opened and closed.

    The directory is locked meanwhile, because two replays would take each other's events. Raises BlockingIOError if
    another process holds the lock.
    """

    def __init__(self, directory: Path, attributes: int, at_once: int = AT_ONCE) -> None:
        self._lock = lock_directory(private_directory(directory))
        self._directory = directory
        self._empty()
        self._dtype = event_type(attributes)
        self._at_once = at_once
        self._counts: dict[int, int] = {}

    @property
    def periods(self) -> list[int]:
        """The periods that have events, in order."""
        return sorted(self._counts)

    def add(self, events: Events, periods: Whole) -> None:
        """Add events to the files of their periods."""
        found = np.unique(periods).tolist()
        for period in found:
            some = events if len(found) == 1 else events[periods == period]
            _append(self._path(period), some)
            self._counts[period] = self._counts.get(period, 0) + len(some)

    def take(self, period: int, scatter: Callable[[Devices], Words]) -> Iterator[Events]:
        """Remove and return all events of a period, in portions that each hold all events of some devices.

        `scatter` gives a number per device, which decides its portion. It should differ from period to period, so that
        portions do not hold the same devices every time.
        """
        count = self._counts.pop(period)
        path = self._path(period)
        buckets = 1 if count <= self._at_once else int(SPREAD * count / self._at_once) + 1
        paths = [path] if buckets == 1 else [path.with_suffix(f".{i}") for i in range(buckets)]
        if buckets > 1:
            with path.open("rb") as file:
                while len(events := np.fromfile(file, self._dtype, self._at_once // 4)):
                    dealt = scatter(events["device"]) % np.uint64(buckets)
                    for i in np.unique(dealt).tolist():
                        _append(paths[i], events[dealt == i])
            path.unlink()
        for part in paths:
            if part.exists():
                yield np.fromfile(part, self._dtype)
                part.unlink()

    def close(self) -> None:
        self._empty()
        os.close(self._lock)

    def _empty(self) -> None:
        for path in self._directory.iterdir():
            path.unlink()

    def _path(self, period: int) -> Path:
        return self._directory / f"{period}.events"


def _append(path: Path, events: Events) -> None:
    with open_private(path, "ab") as file:
        events.tofile(file)
