"""State and results in one SQLite file: takes the place of changelogs and result topics in the embedded app.

A flush is one transaction. Any number of processes may read while one writes. The id of a message is its offset in one
log of all topics: a message that replaces another gets a new one, so that a reader finds everything after an id.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from protocols.errors import ResultsError
from protocols.survey import Survey
from servers.private_files import open_private
from stream_app.log.flushes import Output, TopicName, Write
from stream_app.results.reading import PublishedResults
from stream_app.results.result_topics import RESULT_TOPICS

FILE = "results.sqlite"
_IDENTITY = "identity"
_REPLACED = {topic.name for topic in RESULT_TOPICS if topic.keep == "newest"}
_TABLES = """
CREATE TABLE IF NOT EXISTS state (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY, topic TEXT NOT NULL, key BLOB NOT NULL, headers TEXT NOT NULL, value BLOB NOT NULL,
    UNIQUE (topic, key)
);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class LocalStore(PublishedResults):
    """The store of one data directory."""

    def __init__(self, directory: Path, how: str) -> None:
        place = f"{(directory / FILE).resolve().as_uri()}?{how}"
        self._db = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False)

    @classmethod
    def to_write(cls, directory: Path) -> LocalStore:
        """Open the store of a directory for writing; create it if necessary."""
        open_private(directory / FILE, "ab").close()  # SQLite gives the files beside it the same mode
        store = cls(directory, "mode=rw")
        store._db.execute("PRAGMA journal_mode = WAL")
        store._db.execute("PRAGMA synchronous = FULL")
        store._db.executescript(_TABLES)
        store.setting(_IDENTITY, secrets.token_hex(8))
        return store

    @classmethod
    def existing(cls, directory: Path) -> LocalStore:
        """Open the existing store of a directory for reading; the directory may be read-only."""
        if not (directory / FILE).exists():
            raise ResultsError(f"{directory} contains no results", "name the data directory of a run")
        # SQLite's readers need a file that they share with the writer. If it is missing and cannot be created, no
        # process is writing, and the database can be read without it.
        unshared = not (directory / f"{FILE}-wal").exists() and not os.access(directory, os.W_OK)
        store = cls(directory, "immutable=1" if unshared else "mode=ro")
        try:
            store.surveys()
        except sqlite3.DatabaseError as error:
            store.close()
            raise ResultsError(
                f"{directory / FILE} cannot be read: {error}",
                "restore it from a backup, or name the data directory of another run",
            ) from None
        return store

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything in the block, or nothing if it raises."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def records(self, prefix: str) -> list[tuple[bytes, bytes]]:
        """The state records whose keys begin with a prefix."""
        low, high = prefix.encode(), prefix.encode() + b"\xff"
        return self._db.execute("SELECT key, value FROM state WHERE key >= ? AND key < ?", (low, high)).fetchall()

    def write(self, items: Iterable[Write | Output]) -> None:
        """Write state records and messages."""
        for item in items:
            if isinstance(item, Output):
                self._publish(item)
            elif item.value is None:
                self._db.execute("DELETE FROM state WHERE key = ?", (item.key,))
            else:
                self._db.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (item.key, item.value))

    def _publish(self, output: Output) -> None:
        """Insert a message. If its key exists, it replaces the old one or is ignored, as the topic's row says."""
        headers = json.dumps({name: value.decode() for name, value in output.headers})
        replace = (
            "UPDATE SET (id, value, headers) = ((SELECT MAX(id) + 1 FROM messages), excluded.value, excluded.headers)"
        )
        conflict = replace if output.topic in _REPLACED else "NOTHING"
        self._db.execute(
            f"INSERT INTO messages (topic, key, headers, value) VALUES (?, ?, ?, ?) "
            f"ON CONFLICT (topic, key) DO {conflict}",
            (output.topic, output.key, headers, output.value),
        )

    def messages(self, topic: TopicName) -> Iterator[Output]:
        rows = self._db.execute("SELECT key, value, headers FROM messages WHERE topic = ? ORDER BY id", (topic,))
        for key, value, headers in rows:
            yield Output(topic, key, value, _headers(headers))

    def after(self, id: int) -> list[tuple[int, Output]]:
        """The messages of all topics after an id, with their ids."""
        query = "SELECT id, topic, key, value, headers FROM messages WHERE id > ? ORDER BY id"
        return [
            (number, Output(TopicName(topic), key, value, _headers(headers)))
            for number, topic, key, value, headers in self._db.execute(query, (id,))
        ]

    @property
    def changes(self) -> int:
        """A number that is another one after another process has written."""
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        return int(version)

    @property
    def identity(self) -> str:
        """Differs from that of any other store; empty for one that was made by an earlier version."""
        found = self._db.execute("SELECT value FROM settings WHERE name = ?", (_IDENTITY,)).fetchone()
        return str(found[0]) if found else ""

    def surveys(self) -> list[Survey]:
        """The surveys that are counted in this directory."""
        rows = self._db.execute("SELECT value FROM settings WHERE name LIKE 'survey/%' ORDER BY name").fetchall()
        return [Survey.model_validate_json(value) for (value,) in rows]

    def setting(self, name: str, value: str) -> str:
        """The first value of a setting; if it has none yet, set it to `value`."""
        self._db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, value))
        (kept,) = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return str(kept)

    def close(self) -> None:
        self._db.close()


def _headers(text: str) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, value.encode()) for name, value in json.loads(text).items())
