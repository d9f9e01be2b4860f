"""Results as tables of an SQL database: what SQLite and PostgreSQL have in common.

A flush is one transaction. It deletes the rows of each result's survey and period, inserts them, and notes in
`reached_v1` through which period a survey is complete.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from itertools import islice, repeat
from typing import Any

import pyarrow as pa

from analytics.columns import Part
from protocols.errors import DeliveryError
from views.sinks.sink import Made, TableSink, tables_of

TIME = pa.timestamp("us", tz="UTC")
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
        columns = [
            repeat(self._entry(column.as_py())) if isinstance(column, pa.Scalar) else self._entries(column)
            for column in part.columns.values()
        ]
        marks = ", ".join("?" * len(columns))
        rows = islice(zip(*columns, strict=False), part.rows)
        self._db.cursor().executemany(self._said(f'INSERT INTO "{name}" VALUES ({marks})'), rows)

    def _entries(self, column: pa.Array) -> Iterable[Any]:
        """A column as the driver takes it."""
        return map(self._entry, column.to_pylist())

    def _entry(self, entry: Any) -> Any:
        return entry

    def _run(self, statement: str, *values: object) -> Any:
        return self._db.execute(self._said(statement), values)

    def _said(self, statement: str) -> str:
        return statement.replace("?", self.parameter)

    def close(self) -> None:
        self._db.close()
