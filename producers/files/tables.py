"""Whole tables: from CSV files with the names of the columns in a line above the rows, or from memory."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.csv

from producers.files.batch import as_text
from producers.files.text_files import SAMPLE, TextFile
from protocols.errors import ReplayError

ABOUT = "# "
"""Begins the lines above a table that say what it is."""
TableSource: TypeAlias = Path | Mapping[str, Any] | pa.Table
"""A file, columns by name, or anything that Arrow takes for a table, such as a data frame."""


def table_name(source: TableSource) -> str:
    """What errors call a table."""
    return str(source) if isinstance(source, Path) else "the table"


def read_table(source: TableSource, delimiters: str = ",") -> pa.Table:
    """The table with all columns as text: 01 and 1 are different. Cells are separated as the line of names is."""
    if isinstance(source, Path):
        return _read_csv(source, delimiters)
    table = in_memory(source)
    return pa.table([as_text(column) for column in table.columns], table.column_names)


def in_memory(source: TableSource) -> pa.Table:
    """Columns by name, or a data frame, as a table."""
    try:
        table = pa.table(source)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
        raise ReplayError(
            f"{type(source).__name__} is no table", "give columns of one length by name, or a data frame"
        ) from None
    if len(table) == 0:
        raise ReplayError("the table has no rows", "give it rows")
    return table


def _read_csv(path: Path, delimiters: str) -> pa.Table:
    try:
        with TextFile(path, errors="strict") as file:
            head = file.readline(SAMPLE)
            while head.startswith(ABOUT):
                head = file.readline(SAMPLE)
            content = (head + file.read()).encode()
        separated = pyarrow.csv.ParseOptions(delimiter=max(delimiters, key=head.count))
        names = pyarrow.csv.read_csv(pa.py_buffer(head.encode()), parse_options=separated).column_names
        table = pyarrow.csv.read_csv(
            pa.py_buffer(content),
            pyarrow.csv.ReadOptions(use_threads=False),  # with more, faulty rows have no numbers
            separated,
            pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
        )
    except (OSError, UnicodeError, pa.ArrowInvalid) as error:
        raise ReplayError(
            f"{path} cannot be read as CSV{_fault(error)}",
            "give a table in UTF-8 with the names of the columns in its first line",
        ) from None
    twice = {name for name in names if names.count(name) > 1}
    if twice or len(table) == 0:
        what = f"has the column {min(twice)!r} twice" if twice else "has no rows"
        raise ReplayError(f"{path} {what}", "give it rows, and each column a name of its own")
    return table


def _fault(error: Exception) -> str:
    """What is wrong with a file, without what the CSV reader quotes from it: a row may be about a person."""
    if isinstance(error, FileNotFoundError):
        return ": it does not exist"
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
    return f": row {ragged[1]} has {ragged[3]} columns, not {ragged[2]}" if ragged else ""
