"""Writing the tables of a report to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from analytics.mobility import PART_ROWS, MobilityReport, explained, tables, tables_in_parts
from protocols.survey import Calendar

COLUMNS = "columns.csv"


def write_tables(report: MobilityReport, csv: Path | None, parquet: Path | None) -> list[Path]:
    """Write the tables that have a directory; returns all paths written."""
    written: list[Path] = []
    if csv is not None:
        written += _write_tables(
            report, csv, ".csv", pyarrow.csv.CSVWriter, partial(spreadsheet_table, report.calendar)
        )
    if parquet is not None:
        from pyarrow.parquet import ParquetWriter

        written += _write_tables(report, parquet, ".parquet", ParquetWriter, lambda table: table)
    return written


def spreadsheet_table(calendar: Calendar, table: pa.Table) -> pa.Table:
    """A table for spreadsheets: times are local, and no text is taken for a formula.

    A cell that would be one begins with an apostrophe.
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            local = _each_once(table[field.name].cast(pa.int64()), partial(_local_times, calendar))
            table = table.set_column(place, field.name, local)
        elif pa.types.is_string(field.type):
            table = table.set_column(place, field.name, _each_once(table[field.name], _no_formulas))
    return table


def _each_once(column: pa.ChunkedArray, change: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """A column whose entries are changed, each different one once: most repeat the same few."""
    encoded = column.combine_chunks().dictionary_encode()
    return pa.chunked_array([change(encoded.dictionary).take(encoded.indices)])


def _no_formulas(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"^([=+\-@\t\r])", r"'\1")


def _local_times(calendar: Calendar, instants: pa.Array) -> pa.Array:
    """Times as text in local time, with the offset from UTC that holds then."""
    return pa.array([calendar.local(instant).isoformat() for instant in instants.to_pylist()], pa.string())


def _write_tables(
    report: MobilityReport,
    directory: Path,
    suffix: str,
    writer: Callable[[Path, pa.Schema], Any],
    shown: Callable[[pa.Table], pa.Table],
) -> list[Path]:
    """Write one file for each table that has rows, and one that explains their columns; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[str, Path] = {}
    names = tables(report.model_copy(update={"windows": ()}))
    with ExitStack() as files:
        writers: dict[str, Any] = {}
        for name, table in _parts_of_tables(report):
            rows = shown(table)
            if name not in writers:
                written[name] = directory / f"{name}{suffix}"
                writers[name] = files.enter_context(writer(written[name], rows.schema))
            writers[name].write_table(rows)
    explaining = {name: table for name, table in names.items() if name in written}
    pyarrow.csv.write_csv(explained(explaining), directory / COLUMNS)
    return [*(written[name] for name in explaining), directory / COLUMNS]


def _parts_of_tables(report: MobilityReport) -> Iterator[tuple[str, pa.Table]]:
    """The rows of all tables, by the name of their table: enough of them at a time to be worth a call, and not more."""
    waiting: dict[str, list[pa.Table]] = {}
    for some in in_parts(report):
        for name, parts in tables_in_parts(some).items():
            for part in parts:
                waiting.setdefault(name, []).append(part)
                if sum(map(len, waiting[name])) >= PART_ROWS:
                    yield name, pa.concat_tables(waiting.pop(name))
                    pa.default_memory_pool().release_unused()
    for name, left in waiting.items():
        if sum(map(len, left)):
            yield name, pa.concat_tables(left)


def in_parts(report: MobilityReport) -> Iterator[MobilityReport]:
    """A report in reports of some of its windows each, so that tables of many values are never in memory as a whole."""
    rows = sum(len(attribute.values) for attribute in report.attributes)
    size = max(1, PART_ROWS // max(1, rows))
    for first in range(0, len(report.windows), size):
        yield report.model_copy(update={"windows": report.windows[first : first + size]})
