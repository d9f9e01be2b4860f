"""What is in sinks: their contents by survey and period, read with nothing of ours."""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet

from stream_app.finals import FinalKey

Content = Mapping[FinalKey, Any]


def sqlite_content(path: Path) -> Content:
    """By survey and period: the rows of each table, sorted."""
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return by_period({name: _rows(db, name) for name in names if not name.startswith("reached")})


def postgresql_content(address: str) -> Content:
    import psycopg

    with psycopg.connect(address) as db:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        names = [name for (name,) in db.execute(query).fetchall()]
        return by_period({name: _rows(db, name) for name in names if not name.startswith("reached")})


def parquet_content(directory: Path) -> Content:
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in directory.glob("*/survey=*/date=*/[!.]*.parquet"):
        survey = file.parts[-3].removeprefix("survey=")
        rows = pyarrow.parquet.ParquetFile(file).read().to_pylist()
        tables[file.parts[-4]] += [{"survey": survey, **row} for row in rows]
    return by_period(tables)


def _rows(db: Any, table: str) -> list[dict[str, Any]]:
    cursor = db.execute(f'SELECT * FROM "{table}"')
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def by_period(tables: Mapping[str, list[dict[str, Any]]]) -> Content:
    found: dict[FinalKey, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, rows in tables.items():
        for row in rows:
            plain = sorted((column, _plain(entry)) for column, entry in row.items())
            found[FinalKey(row["survey"], row["period"])][name].append(repr(plain))
    return {key: {name: sorted(rows) for name, rows in of_key.items()} for key, of_key in found.items()}


def _plain(entry: Any) -> Any:
    """Times as text in UTC, and true and false as numbers: SQLite has no other."""
    if isinstance(entry, datetime):
        return f"{entry.astimezone(UTC):%F %T}"
    return int(entry) if isinstance(entry, bool) else entry
