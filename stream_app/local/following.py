"""Reading the results of a data directory, and on as another process adds to them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from protocols.errors import ResultsError
from protocols.survey import Survey
from stream_app.local.store import LocalStore
from stream_app.log.flushes import Come

POLL_SECONDS = 0.1


class DirectoryFollower:
    """Reads the store of a directory. It has one place, whose offsets are the ids of messages.

    One thread reads. Another one may ask for the present identity.
    """

    places = 1
    caught_up = True

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._store = LocalStore.existing(directory)
        self.identity = self._store.identity
        self._changes: int | None = None
        self._next = 1
        self._surveys: dict[str, Survey] = {}

    def present_identity(self) -> str:
        """The identity of the store that is there now: another one if the directory was made again."""
        with closing(LocalStore.existing(self._directory)) as store:
            return store.identity

    def poll(self, seconds: float) -> Come:
        """What has come since the last call; waits for something for at most so long."""
        deadline = time.monotonic() + seconds
        with self._explained():
            while self._store.changes == self._changes:
                if time.monotonic() >= deadline:
                    return Come()
                time.sleep(POLL_SECONDS)
            self._changes = self._store.changes
            found = self._store.after(self._next - 1)
            surveys = {survey.id: survey for survey in self._store.surveys()}
        new = [survey for id, survey in surveys.items() if self._surveys.get(id) != survey]
        self._surveys = surveys
        if found:
            self._next = found[-1][0] + 1
        return Come(new, [(0, id, message) for id, message in found])

    def seek(self, offsets: Sequence[int]) -> None:
        """Go on at this id."""
        (self._next,) = offsets

    def lag(self) -> None:
        """Nothing: a run counts what it sends."""

    def close(self) -> None:
        self._store.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ResultsError(
                f"{self._directory}: the results cannot be read: {error}", "is the directory still there?"
            ) from None
