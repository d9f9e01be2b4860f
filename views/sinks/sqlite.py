"""Results as tables of an SQLite file, which anybody can open: `results/hearsay.sqlite` of a data directory."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from protocols.errors import DeliveryError
from servers.private_files import open_private, private_directory
from views.sinks.sql import TIME, SqlSink

TYPES = {pa.int64(): "INTEGER", pa.float64(): "REAL", pa.string(): "TEXT", pa.bool_(): "INTEGER", TIME: "TEXT"}
WAIT_SECONDS = 10.0
"""How long to wait for another program that is writing to the file."""


class SqliteSink(SqlSink):
    """A file. Any number of processes may read it while one writes. Times are text, in UTC."""

    types = TYPES
    errors = (sqlite3.Error, OSError)
    hint = (
        "see whether the disk has space and whether another program has locked the file; "
        "if it is damaged, delete it: it is written again from finals"
    )

    def __init__(self, address: str) -> None:
        self._path = Path(address.removeprefix("sqlite:"))
        super().__init__(str(self._path))

    def _connect(self) -> sqlite3.Connection:
        private_directory(self._path.parent)
        open_private(self._path, "ab").close()  # SQLite gives the files beside it the same mode
        db = sqlite3.connect(self._path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version:
            db.close()
            raise DeliveryError(f"{self._path} belongs to another program", "name another file for results")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")  # a power cut may undo what was written last: it is made again
        return db

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._db:  # commits, or rolls back
            self._db.execute("BEGIN IMMEDIATE")
            yield

    def _entry(self, entry: Any) -> Any:
        return f"{entry:%F %T}" if isinstance(entry, datetime) else entry
