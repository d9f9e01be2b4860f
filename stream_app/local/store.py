"""State and results in one SQLite file: takes the place of changelogs and result topics in the embedded app.

A flush is one transaction. Any number of processes may read while one writes. The id of a message is its offset in one
log of all topics: a message that replaces another gets a new one, so that a reader finds everything after an id. Dead
letters, which are no results, have ids below 0: readers see ids, and would count refused records by those between.

Every row has a checksum of its own, because SQLite has none: a bit that a disk has changed would be published.
"""

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

from protocols.errors import AnotherRelease, HearsayError, ResultsError, StateError
from protocols.survey import Survey
from servers.private_files import open_private, sync_directory
from stream_app.log.codec import ANOTHER_RELEASE
from stream_app.log.flushes import DEADLETTERS, FINALS, OPEN, RESULTS, Come, Output, TopicName, Write

FILE = "results.sqlite"
BUSY_SECONDS = 60.0
"""How long a connection waits for another one that writes: counts of many values take a while to write."""
_IDENTITY = "identity"
_REPLACED = {OPEN, *(topic.name for topic in RESULTS if topic.replaced)}
_VERSION = 2  # of the tables; 0 is a file without any, or with those of an earlier release
_SPACE = "make sure the disk has space, then run the same command again: it resumes"
_BACKUP = "restore the directory from a backup"
_TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE state (key BLOB PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE messages (
    id INTEGER PRIMARY KEY, topic TEXT NOT NULL, key BLOB NOT NULL, headers TEXT NOT NULL, value BLOB NOT NULL,
    checksum INTEGER NOT NULL, UNIQUE (topic, key)
);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
COMMIT;
"""


class LocalStore:
    """The store of one data directory."""

    def __init__(self, directory: Path, how: str) -> None:
        place = f"{(directory / FILE).resolve().as_uri()}?{how}"
        self._db = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
        self._directory = directory
        self._left_out: Collection[str] = ()

    @classmethod
    def to_write(cls, directory: Path) -> "LocalStore":
        """Open the store of a directory for writing; create it if necessary."""
        open_private(directory / FILE, "ab").close()  # SQLite gives the files beside it the same mode
        sync_directory(directory)
        store = cls(directory, "mode=rw")
        try:
            store._db.execute("PRAGMA journal_mode = WAL")
            store._db.execute("PRAGMA synchronous = FULL")
            # What a failed sync has left in the WAL may be readable and not on disk: this writes it elsewhere, synced.
            store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if not store._has_tables():
                store._db.executescript(_TABLES)
            store.setting(_IDENTITY, secrets.token_hex(8))
            for _ in store.records(""):  # all of them: a changed key would hide its record from who asks for a prefix
                pass
        except BaseException as error:
            store.close()
            if not isinstance(error, sqlite3.Error):
                raise
            advice = _SPACE if isinstance(error, sqlite3.OperationalError) else _BACKUP
            raise StateError(f"{directory / FILE} cannot be used: {error}", advice) from None
        return store

    @classmethod
    def existing(cls, directory: Path) -> "LocalStore":
        """Open the existing store of a directory for reading; the directory may be read-only."""
        if not (directory / FILE).exists():
            raise ResultsError(f"{directory} contains no results", "name the data directory of a run")
        # SQLite's readers need a file that they share with the writer. If it is missing and cannot be created, no
        # process is writing, and the database can be read without it.
        unshared = not (directory / f"{FILE}-wal").exists() and not os.access(directory, os.W_OK)
        store = cls(directory, "immutable=1" if unshared else "mode=ro")
        try:
            store._has_tables()
            store.surveys()
        except sqlite3.DatabaseError as error:
            store.close()
            raise ResultsError(
                f"{directory / FILE} cannot be read: {error}",
                "restore it from a backup, or name the data directory of another run",
            ) from None
        return store

    def another(self) -> "LocalStore":
        """One more connection, for another thread of the process that writes."""
        store = LocalStore(self._directory, "mode=rw")
        store.leave_out(self._left_out)
        return store

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Whatever the block reads is of one moment. It must not write."""
        self._db.execute("BEGIN")
        with self._db:
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything in the block, or nothing if it raises."""
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            yield

    def records(self, prefix: str) -> Iterator[tuple[bytes, bytes]]:
        """The state records whose keys begin with a prefix."""
        low, high = prefix.encode(), prefix.encode() + b"\xff"
        rows = self._db.execute("SELECT key, value, checksum FROM state WHERE key >= ? AND key < ?", (low, high))
        return ((key, value) for key, value in _checked(rows, "a state record", StateError))

    def write(self, items: Iterable[Write | Output]) -> None:
        """Write state records and messages."""
        for item in items:
            if isinstance(item, Output):
                self._publish(item)
            elif item.value is None:
                self._db.execute("DELETE FROM state WHERE key = ?", (item.key,))
            else:
                self._db.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", _summed(item.key, item.value))

    def _publish(self, output: Output) -> None:
        """Insert a message. If its key exists, it replaces the old one or is ignored, as the topic's row says.

        What was known of a period while it was open goes when it is final.
        """
        if output.topic == FINALS:
            self._db.execute("DELETE FROM messages WHERE topic = ? AND key = ?", (OPEN, output.key))
        headers = json.dumps({name: value.decode() for name, value in output.headers})
        next_id = (
            "MIN(coalesce(MIN(id), 0), 0) - 1" if output.topic == DEADLETTERS else "MAX(coalesce(MAX(id), 0), 0) + 1"
        )
        conflict = "REPLACE" if output.topic in _REPLACED else "IGNORE"
        self._db.execute(
            f"INSERT OR {conflict} INTO messages VALUES ((SELECT {next_id} FROM messages), ?, ?, ?, ?, ?)",
            _summed(output.topic, output.key, headers, output.value),
        )

    def messages(self, topic: TopicName) -> Iterator[Output]:
        """Every message of a topic, in the order of publication."""
        return (message for _, message in self._messages("topic = ?", topic))

    def count(self, topic: TopicName) -> int:
        """How many messages a topic has."""
        return len(self.keys(topic))

    def keys(self, topic: TopicName) -> list[bytes]:
        """The keys of a topic's messages."""
        return [key for (key,) in self._db.execute("SELECT key FROM messages WHERE topic = ?", (topic,))]

    def messages_with(self, topic: TopicName, keys: Iterable[bytes]) -> list[Output]:
        """The messages of a topic that have these keys, in this order."""
        return [message for key in keys for _, message in self._messages("topic = ? AND key = ?", topic, key)]

    @property
    def last_id(self) -> int:
        """The id of the newest message; 0 if there is none."""
        (newest,) = self._db.execute("SELECT MAX(id) FROM messages").fetchone()
        return max(newest or 0, 0)

    def after(self, id: int, topics: Collection[TopicName] = ()) -> list[tuple[int, Output]]:
        """The messages after an id, with their ids: of some topics, or of all."""
        named = f" AND topic IN ({', '.join('?' * len(topics))})" if topics else ""
        return list(self._messages(f"id > ?{named}", id, *topics))

    def _messages(self, which: str, *values: object) -> Iterator[tuple[int, Output]]:
        query = f"SELECT id, topic, key, headers, value, checksum FROM messages WHERE {which} ORDER BY id"
        for id, *row in self._db.execute(query, values):
            for topic, key, headers, content in _checked([row], "a published result", ResultsError):
                named = tuple((name, text.encode()) for name, text in json.loads(headers).items())
                yield id, Output(TopicName(topic), key, content, named)

    @property
    def changes(self) -> int:
        """A number that is another one after another process has written."""
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        return int(version)

    @property
    def identity(self) -> str:
        """Differs from that of any other store; empty for one that was made by an earlier version."""
        return dict(self._settings(_IDENTITY)).get(_IDENTITY, "")

    def surveys(self) -> list[Survey]:
        """The surveys that are counted in this directory, without those that are left out."""
        found = [_survey_of(value) for _, value in self._settings("survey/*")]
        return [survey for survey in found if survey.id not in self._left_out]

    def leave_out(self, surveys: Collection[str]) -> None:
        """Do not name these surveys from now on: nothing can be made of them. What is kept of them stays."""
        self._left_out = surveys

    def setting(self, name: str, value: str) -> str:
        """The first value of a setting; if it has none yet, set it to `value`."""
        self._db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?, ?)", _summed(name, value))
        return dict(self._settings(name))[name]

    def _settings(self, pattern: str) -> list[tuple[str, str]]:
        rows = self._db.execute("SELECT * FROM settings WHERE name GLOB ? ORDER BY name", (pattern,))
        return [(name, value) for name, value in _checked(rows, "a setting", StateError)]

    def _has_tables(self) -> bool:
        """Whether there are tables; an error if they are not those of this release."""
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if tables and version != _VERSION:
            raise AnotherRelease(f"{FILE} has the tables of another release", ANOTHER_RELEASE)
        return bool(tables)

    def close(self) -> None:
        self._db.close()


def _sum(*parts: str | bytes) -> int:
    return crc32(b"\0".join(part.encode() if isinstance(part, str) else part for part in parts))


def _summed(*parts: Any) -> tuple[Any, ...]:
    """A row with its checksum."""
    return *parts, _sum(*parts)


def _checked(rows: Iterable[Sequence[Any]], what: str, error: type[HearsayError]) -> Iterator[Sequence[Any]]:
    """Rows without their checksums; an error if one does not fit."""
    for *parts, checksum in rows:
        if _sum(*parts) != checksum:
            raise error(f"{what} in {FILE} is damaged: its checksum is not that of {parts[:-1]!r}", _BACKUP)
        yield parts


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
        try:
            while self._store.changes == self._changes:
                if time.monotonic() >= deadline:
                    return Come()
                time.sleep(POLL_SECONDS)
            self._changes = self._store.changes
            found = self._store.after(self._next - 1)
            surveys = {survey.id: survey for survey in self._store.surveys()}
        except sqlite3.Error as error:
            raise ResultsError(
                f"{self._directory}: the results cannot be read: {error}", "is the directory still there?"
            ) from None
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


@lru_cache(maxsize=1024)
def _survey_of(text: str) -> Survey:
    """A survey as it was kept. Every publication asks for all of them, and to read many values takes a while."""
    return Survey.model_validate_json(text)
