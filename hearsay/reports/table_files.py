"""Writing the tables of a report to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from analytics.mobility import PART_ROWS, MobilityReport, Part, explained, tables, tables_in_parts
from hearsay.reports.csv_text import csv_file, csv_rows

COLUMNS = "columns.csv"
ENOUGH_ROWS = PART_ROWS // 2
"""So many rows are written at a time, at least."""


def write_tables(report: MobilityReport, csv: Path | None, parquet: Path | None) -> list[Path]:
    """Write the tables that have a directory; returns all paths written."""
    written: list[Path] = []
    if csv is not None:
        written += _write_tables(report, csv, ".csv", csv_file, partial(csv_rows, report.calendar))
    if parquet is not None:
        from pyarrow.parquet import ParquetWriter

        written += _write_tables(report, parquet, ".parquet", ParquetWriter, Part.table)
    return written


def _write_tables(
    report: MobilityReport,
    directory: Path,
    suffix: str,
    opened: Callable[[Path, pa.Schema], Any],
    content: Callable[[Part], Any],
) -> list[Path]:
    """Write one file for each table that has rows, and one that explains their columns; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[str, Path] = {}
    names = tables(report.model_copy(update={"windows": ()}))
    with ExitStack() as files:
        files.enter_context(_giving_memory_back())
        writers: dict[str, Any] = {}
        for name, part in _parts_of_tables(report):
            if name not in writers:
                written[name] = directory / f"{name}{suffix}"
                writers[name] = files.enter_context(opened(written[name], part.schema))
            writers[name].write(content(part))
    explaining = {name: table for name, table in names.items() if name in written}
    pyarrow.csv.write_csv(explained(explaining), directory / COLUMNS)
    return [*(written[name] for name in explaining), directory / COLUMNS]


@contextmanager
def _giving_memory_back() -> Iterator[None]:
    """In this block pyarrow keeps no memory for later that it does not use."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def _parts_of_tables(report: MobilityReport) -> Iterator[tuple[str, Part]]:
    """The rows of all tables, by the name of their table: enough of them at a time to be worth a call, and not more."""
    waiting: dict[str, list[Part]] = {}
    for some in in_parts(report):
        for name, parts in tables_in_parts(some).items():
            for part in parts:
                if part.rows:
                    waiting.setdefault(name, []).append(part)
                if sum(each.rows for each in waiting.get(name, ())) >= ENOUGH_ROWS:
                    yield name, _together(waiting.pop(name))
    for name, left in waiting.items():
        yield name, _together(left)


def _together(parts: list[Part]) -> Part:
    return parts[0] if len(parts) == 1 else Part.of(pa.concat_tables([part.table() for part in parts]))


def in_parts(report: MobilityReport) -> Iterator[MobilityReport]:
    """A report in reports of some of its windows each, so that tables of many values are never in memory as a whole."""
    rows = sum(len(attribute.values) for attribute in report.attributes)
    size = max(1, PART_ROWS // max(1, rows))
    for first in range(0, len(report.windows), size):
        yield report.model_copy(update={"windows": report.windows[first : first + size]})
