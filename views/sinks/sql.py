"""Results as tables of an SQL database: of an SQLite file, which anybody can open, or of PostgreSQL.

A flush is one transaction. It deletes the rows of each result's survey and period, inserts them, and notes in
`reached_v1` through which period a survey is complete.

The driver of PostgreSQL, psycopg, is an extra: the extra `postgresql`.
"""

import sqlite3
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import datetime
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import pyarrow as pa

from analytics.columns import Part
from protocols.errors import DeliveryError, SettingsError
from servers.distribution import pip_install
from servers.private_files import open_private, private_directory
from servers.settings import has_password
from views.sinks.postgresql_tls import MODE, changed_since_02, sslmode_to_add
from views.sinks.sink import Made, TableSink, tables_of

TIME = pa.timestamp("us", tz="UTC")
SQLITE_TYPES = {pa.int64(): "INTEGER", pa.float64(): "REAL", pa.string(): "TEXT", pa.bool_(): "INTEGER", TIME: "TEXT"}
POSTGRESQL_TYPES = {
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE PRECISION",
    pa.string(): "TEXT",
    pa.bool_(): "BOOLEAN",
    TIME: "TIMESTAMP WITH TIME ZONE",
}
WAIT_SECONDS = 10.0
"""How long to wait for another program that is writing to an SQLite file."""
CONNECT_SECONDS = 10
SILENCE_MS = 30_000
"""How long a connection may be silent before it counts as broken."""
LOCK_WAIT = "60s"
LOCK = int.from_bytes(b"hearsay", "big")
"""The number of the lock that a sink holds while it writes: two that insert the same rows would double them."""
_REACHED = "reached_v1 (survey TEXT NOT NULL, views TEXT NOT NULL, period BIGINT NOT NULL, PRIMARY KEY (survey, views))"


class SqlSink(TableSink):
    """A sink in a database, over a connection as Python's DB-API has them."""

    types: Mapping[pa.DataType, str]  # of columns, by their types in Arrow
    parameter = "?"

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._known: set[str] = set()
        with self._explained(), ExitStack() as opened:
            self._db = opened.enter_context(closing(self._connect()))
            with self._transaction():
                self._run(f"CREATE TABLE IF NOT EXISTS {_REACHED}")
                self._run("INSERT INTO reached_v1 VALUES (?, ?, ?)", "", "", -1)  # it can be written
                self._run("DELETE FROM reached_v1 WHERE survey = ?", "")
            opened.pop_all()

    @abstractmethod
    def _connect(self) -> Any: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """A transaction that no other one of a sink runs beside."""

    def complete(self) -> Mapping[str, int]:
        with self._explained():
            return dict(self._run("SELECT survey, period FROM reached_v1 WHERE views = ?", self.edition).fetchall())

    def _write(self, waiting: Sequence[Made], through: Mapping[str, int]) -> None:
        with self._explained(), self._transaction():
            for made in waiting:
                for name, parts in tables_of(made):
                    for number, part in enumerate(parts):
                        if number == 0:
                            self._create(name, part.schema)
                            where = made.key.survey, made.key.period
                            self._run(f'DELETE FROM "{name}" WHERE survey = ? AND period = ?', *where)
                        if part.rows:
                            self._insert(name, part)
            for survey, period in through.items():
                self._run(
                    "INSERT INTO reached_v1 VALUES (?, ?, ?) ON CONFLICT (survey, views) "
                    "DO UPDATE SET period = excluded.period WHERE reached_v1.period < excluded.period",
                    survey,
                    self.edition,
                    period,
                )

    def _create(self, name: str, schema: pa.Schema) -> None:
        """Make a table unless it exists; it must have these columns."""
        if name in self._known:
            return
        columns = ", ".join(f'"{field.name}" {self.types[field.type]}' for field in schema)
        self._run(f'CREATE TABLE IF NOT EXISTS "{name}" ({columns})')
        self._run(f'CREATE INDEX IF NOT EXISTS "{name}_by_period" ON "{name}" (survey, period)')
        found = [column[0] for column in self._run(f'SELECT * FROM "{name}" LIMIT 0').description]
        if found != schema.names:
            raise DeliveryError(
                f"the table {name} of {self._place} has other columns than this version writes",
                "rename or drop it, and delete the rows of `reached_v1`: it is written again from finals",
            )
        self._known.add(name)

    def _insert(self, name: str, part: Part) -> None:
        columns: list[Iterator[Any]] = []
        for column in part.columns.values():
            alike = isinstance(column, pa.Scalar)
            columns.append(repeat(self._entry(column.as_py())) if alike else map(self._entry, column.to_pylist()))
        marks = ", ".join("?" * len(columns))
        rows = islice(zip(*columns, strict=False), part.rows)
        self._db.cursor().executemany(self._said(f'INSERT INTO "{name}" VALUES ({marks})'), rows)

    def _entry(self, entry: Any) -> Any:
        """An entry as the driver takes it."""
        return entry

    def _run(self, statement: str, *values: object) -> Any:
        return self._db.execute(self._said(statement), values)

    def _said(self, statement: str) -> str:
        return statement.replace("?", self.parameter)

    def close(self) -> None:
        self._db.close()


class SqliteSink(SqlSink):
    """A file. Any number of processes may read it while one writes. Times are text, in UTC."""

    types = SQLITE_TYPES
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


class PostgresqlSink(SqlSink):
    """A database, in the first schema of the user's search path. libpq's variables apply, PGPASSWORD among them.

    The certificate of a server elsewhere is verified, unless the address or a variable says what to do.
    """

    types = POSTGRESQL_TYPES
    parameter = "%s"
    hint = "see whether the server is up, and whether its user may create tables and write to them"

    def __init__(self, address: str) -> None:
        if has_password(address):
            raise SettingsError(
                "a password in the address of a database would be printed",
                "leave it out, and put it in PGPASSWORD or in a password file (PGPASSFILE)",
            )
        try:
            import psycopg
        except ImportError:
            raise SettingsError(
                "the driver of PostgreSQL is not installed", f"run `{pip_install('postgresql')}`"
            ) from None
        self.errors, self._driver = (psycopg.Error,), psycopg
        super().__init__(address)

    def _connect(self) -> Any:
        options: dict[str, Any] = {
            "connect_timeout": CONNECT_SECONDS,
            "tcp_user_timeout": SILENCE_MS,
            "application_name": "hearsay",
        }
        added = sslmode_to_add(self._place, self._driver)
        if added is not None:
            options[MODE] = added
        try:
            return self._driver.connect(self._place, autocommit=True, **options)
        except self._driver.Error as error:
            cure = None if added is None else changed_since_02(self._place, error)
            if cure is None:
                raise
            said = " ".join(str(error).split())
            raise DeliveryError(f"results cannot be written to {self._place}: {said}", cure) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._db.transaction():
            self._db.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT}'")
            self._db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            yield
