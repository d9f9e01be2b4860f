"""The tables of a report as files: written to directories, or given to a browser.

CSV is for spreadsheets: times are local, and no text is taken for a formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from pydantic_core import to_json

from analytics.columns import Part
from analytics.mobility import PART_ROWS, MobilityReport, explained, tables, tables_in_parts
from hearsay.reports.files import chosen, mobility_of
from protocols.arrays import Floats
from protocols.errors import ResultsError
from protocols.survey import Calendar
from views.reading import Results
from views.results import histogram_table

if TYPE_CHECKING:
    from pages.dashboard import Wanted

COLUMNS = "columns.csv"
HISTOGRAMS = "histograms"
ENOUGH_ROWS = PART_ROWS // 2
"""So many rows are written at a time, at least."""
FORMULAS = pa.array(["=", "+", "-", "@", "\t", "\r"])
"""How a cell begins that a spreadsheet takes for a formula."""
DIGITS = 9
"""Significant digits of a number in CSV; Parquet and JSON have all."""


def write_tables(report: MobilityReport, csv: Path | None, parquet: Path | None) -> list[Path]:
    """Write the tables that have a directory; returns all paths written."""
    written: list[Path] = []
    if csv is not None:
        written += _write_tables(report, csv, ".csv", pyarrow.csv.CSVWriter, partial(for_spreadsheets, report.calendar))
    if parquet is not None:
        written += _write_tables(report, parquet, ".parquet", pyarrow.parquet.ParquetWriter, lambda table: table)
    return written


def _write_tables(
    report: MobilityReport,
    directory: Path,
    suffix: str,
    opened: Callable[[Path, pa.Schema], Any],
    content: Callable[[pa.Table], pa.Table],
) -> list[Path]:
    """Write one file for each table that has rows, and one that explains their columns; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[str, pa.Table] = {}
    for name, parts in tables_in_parts(report).items():
        with ExitStack() as file:
            for table in _pieces(parts):
                rows = content(table)
                if name not in written:
                    written[name] = table.schema.empty_table()
                    writer = file.enter_context(opened(directory / f"{name}{suffix}", rows.schema))
                writer.write(rows)
    pyarrow.csv.write_csv(explained(written), directory / COLUMNS)
    return [*(directory / f"{name}{suffix}" for name in written), directory / COLUMNS]


def _pieces(parts: Iterable[Part]) -> Iterator[pa.Table]:
    """The rows of a table: enough of them at a time to be worth a call, and not all of them."""
    waiting: list[Part] = []
    for part in parts:
        if part.rows:
            waiting.append(part)
        if sum(each.rows for each in waiting) >= ENOUGH_ROWS:
            yield pa.concat_tables([each.table() for each in waiting])
            waiting = []
    if waiting:
        yield pa.concat_tables([each.table() for each in waiting])


def download(results: Results, wanted: Wanted, data: Path | None) -> bytes:
    """The bytes of a table, with the losses noted in `data`. Raises ResultsError where there is nothing of the kind."""
    if wanted.table == HISTOGRAMS:
        table = histogram_table(results.histograms(wanted.survey))
    else:
        found = tables(mobility_of(results, wanted.survey, data=data))
        if wanted.table not in found:
            raise ResultsError(f"there is no table {wanted.table!r}", f"there are {', '.join([*found, HISTOGRAMS])}")
        table = found[wanted.table]
    if wanted.attribute is not None:
        if "attribute" not in table.column_names:
            raise ResultsError(f"the table {wanted.table!r} is not about attributes", "ask for it without one")
        table = table.filter(pc.equal(table["attribute"], wanted.attribute))
    if wanted.format == "json":
        return to_json(table.to_pylist(), inf_nan_mode="null") + b"\n"
    file = BytesIO()
    if wanted.format == "csv":
        pyarrow.csv.write_csv(for_spreadsheets(chosen(results, wanted.survey).calendar, table), file)
    else:
        pyarrow.parquet.write_table(table, file)
    return file.getvalue()


def for_spreadsheets(calendar: Calendar, table: pa.Table) -> pa.Table:
    """The same rows as CSV has them."""
    shown = [_shown(calendar, column.combine_chunks()) for column in table.columns]
    return pa.table(shown, names=table.column_names)


def _shown(calendar: Calendar, entries: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(entries.type):
        known = entries.cast(pa.int64()).to_pylist()
        return pa.array([None if at is None else calendar.local(at).isoformat() for at in known], pa.string())
    if pa.types.is_floating(entries.type):
        return pa.array(_shortened(entries.to_numpy(zero_copy_only=False)), from_pandas=True)
    if not pa.types.is_string(entries.type):
        return entries
    formula = pc.is_in(pc.utf8_slice_codeunits(entries, 0, 1), value_set=FORMULAS)
    return pc.if_else(formula, pc.binary_join_element_wise("'", entries, ""), entries)


def _shortened(numbers: Floats) -> Floats:
    """Numbers without the digits that only the way of computing has.

    >>> _shortened(np.array([58.35399999999999, -54.60750853242321, 3e-12, 0.0])).tolist()
    [58.354, -54.6075085, 3e-12, 0.0]
    """
    with np.errstate(divide="ignore"):
        decimals = DIGITS - 1 - np.nan_to_num(np.floor(np.log10(np.abs(numbers))), neginf=0)
    scale = 10.0 ** np.clip(decimals, 0, 22)  # these powers are exact
    return np.asarray(np.round(numbers * scale) / scale)
