"""State and results in one SQLite file: what changelogs and result topics are when there is no broker.

Everything a flush writes goes in one transaction. Any number of readers may look while a run is going on.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from analytics.mobility import MobilityReport
from protocols.errors import ResultsError
from protocols.survey import Survey
from stream_app.log.flushes import Output, TopicName, Write
from stream_app.results.histograms import Histogram, Live

FILE = "results.sqlite"
_TABLES = """
CREATE TABLE IF NOT EXISTS state (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY, topic TEXT NOT NULL, key BLOB NOT NULL, headers TEXT NOT NULL, value BLOB NOT NULL,
    UNIQUE (topic, key)
);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class LocalStore:
    """The store of one data directory."""

    def __init__(self, directory: Path, how: str) -> None:
        place = f"{(directory / FILE).resolve().as_uri()}?{how}"
        self._db = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False)

    @classmethod
    def to_write(cls, directory: Path) -> LocalStore:
        """The store of a directory, made if there is none."""
        store = cls(directory, "mode=rwc")
        store._db.execute("PRAGMA journal_mode = WAL")
        store._db.execute("PRAGMA synchronous = FULL")
        store._db.executescript(_TABLES)
        return store

    @classmethod
    def existing(cls, directory: Path) -> LocalStore:
        """The store of a directory in which there is one, to look at results; also where one may only look."""
        if not (directory / FILE).exists():
            raise ResultsError(f"{directory} holds no results", "name the data directory of a run")
        # Readers share a file with the writer. Where there is none and we may not make one, nobody writes.
        alone = not (directory / f"{FILE}-wal").exists() and not os.access(directory, os.W_OK)
        store = cls(directory, "immutable=1" if alone else "mode=ro")
        try:
            store.surveys()
        except sqlite3.DatabaseError as error:
            store.close()
            raise ResultsError(
                f"{directory / FILE} cannot be read: {error}", "restore it, or name another run"
            ) from None
        return store

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def records(self, prefix: str) -> list[tuple[bytes, bytes]]:
        """The state records whose keys begin so."""
        low, high = prefix.encode(), prefix.encode() + b"\xff"
        return self._db.execute("SELECT key, value FROM state WHERE key >= ? AND key < ?", (low, high)).fetchall()

    def write(self, items: Iterable[Write | Output]) -> None:
        for item in items:
            if isinstance(item, Output):
                self._publish(item)
            elif item.value is None:
                self._db.execute("DELETE FROM state WHERE key = ?", (item.key,))
            else:
                self._db.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (item.key, item.value))

    def _publish(self, output: Output) -> None:
        """A final stays as it was first published; of what is live only the newest matters."""
        headers = json.dumps({name: value.decode() for name, value in output.headers})
        conflict = "UPDATE SET value = excluded.value" if output.topic == "live" else "NOTHING"
        self._db.execute(
            f"INSERT INTO messages (topic, key, headers, value) VALUES (?, ?, ?, ?) "
            f"ON CONFLICT (topic, key) DO {conflict}",
            (output.topic, output.key, headers, output.value),
        )

    def messages(self, topic: TopicName) -> Iterator[Output]:
        """What was published, in order."""
        rows = self._db.execute("SELECT key, value, headers FROM messages WHERE topic = ? ORDER BY id", (topic,))
        for key, value, headers in rows:
            yield Output(topic, key, value, tuple((name, text.encode()) for name, text in json.loads(headers).items()))

    def histograms(self, survey: str) -> list[Histogram]:
        """The finals of a survey, by period."""
        prefix = f"{survey}/".encode()
        found = [m.value for m in self.messages("histograms") if m.key.startswith(prefix)]
        return sorted((Histogram.model_validate_json(value) for value in found), key=lambda result: result.period)

    def mobility(self, survey: str) -> list[MobilityReport]:
        """The mobility reports of a survey, by period."""
        prefix = f"{survey}/".encode()
        found = [m for m in self.messages("mobility") if m.key.startswith(prefix)]
        in_order = sorted(found, key=lambda m: int(m.key.rpartition(b"/")[2]))
        return [MobilityReport.model_validate_json(m.value) for m in in_order]

    def live(self, survey: str) -> Live | None:
        """How a survey stood at the last flush."""
        found = [m.value for m in self.messages("live") if m.key == survey.encode()]
        return Live.model_validate_json(found[0]) if found else None

    def surveys(self) -> list[Survey]:
        """The surveys that are counted here."""
        rows = self._db.execute("SELECT value FROM settings WHERE name LIKE 'survey/%' ORDER BY name").fetchall()
        return [Survey.model_validate_json(value) for (value,) in rows]

    def setting(self, name: str, value: str) -> str:
        """What a setting was first set to: `value`, if that is now."""
        self._db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, value))
        (kept,) = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return str(kept)

    def close(self) -> None:
        self._db.close()
