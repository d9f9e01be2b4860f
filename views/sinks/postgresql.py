"""Results as tables of a PostgreSQL database. The driver, psycopg, is an extra: `pip install 'hearsay[postgresql]'`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from protocols.errors import SettingsError
from servers.settings import has_password
from views.sinks.sql import TIME, SqlSink

TYPES = {
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE PRECISION",
    pa.string(): "TEXT",
    pa.bool_(): "BOOLEAN",
    TIME: "TIMESTAMP WITH TIME ZONE",
}
CONNECT_SECONDS = 10
SILENCE_MS = 30_000
"""How long a connection may be silent before it counts as broken."""
LOCK_WAIT = "60s"
LOCK = int.from_bytes(b"hearsay", "big")
"""The number of the lock that a sink holds while it writes: two that insert the same rows would double them."""


class PostgresqlSink(SqlSink):
    """A database, in the first schema of the user's search path. libpq's variables apply, PGPASSWORD among them."""

    types = TYPES
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
                "the driver of PostgreSQL is not installed", "run `pip install 'hearsay[postgresql]'`"
            ) from None
        self.errors, self._driver = (psycopg.Error,), psycopg
        super().__init__(address)

    def _connect(self) -> Any:
        limits = {"connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": SILENCE_MS, "application_name": "hearsay"}
        return self._driver.connect(self._place, autocommit=True, **limits)  # type: ignore[arg-type]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._db.transaction():
            self._db.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT}'")
            self._db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            yield
