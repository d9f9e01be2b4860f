"""Tables of people: one row per person, and the names of the columns in the first line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from producers.replay import UNKNOWN, cells, places
from protocols.arrays import Values
from protocols.errors import ScenarioError
from protocols.survey import Survey

MOST_VALUES = 10_000  # a column with more different values is an identifier or a number, not an answer


def read_table(path: Path) -> pa.Table:
    """The table with all columns as text: 01 and 1 are different values."""
    try:
        # Only with one thread are faulty rows numbered.
        one_thread = pa.csv.ReadOptions(use_threads=False, skip_rows=_lines_about(path))
        with pa.csv.open_csv(path, one_thread) as reader:
            names = reader.schema.names
        text = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        table = pa.csv.read_csv(path, one_thread, convert_options=text)
    except (OSError, pa.ArrowInvalid) as error:
        raise ScenarioError(
            f"{path} cannot be read as CSV{_fault(error)}",
            "give a comma-separated table in UTF-8 with the names of the columns in its first line",
        ) from None
    twice = {name for name in names if names.count(name) > 1}
    if twice or len(table) == 0:
        what = f"has the column {min(twice)!r} twice" if twice else "has no rows"
        raise ScenarioError(f"{path} {what}", "give one row per person, and each column a name of its own")
    return table


def _lines_about(path: Path) -> int:
    """How many lines of a file of synthetic records say what it is, above the table."""
    with path.open("rb") as file:
        lines = list(takewhile(lambda line: line.startswith(b"# "), file))
    return len(lines) if lines and b" synthetic records of survey " in lines[0] else 0


def _fault(error: Exception) -> str:
    """What is wrong with a file, without what the CSV reader quotes from it: a row is about a person."""
    if isinstance(error, FileNotFoundError):
        return ": it does not exist"
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
    return f": row {ragged[1]} has {ragged[3]} columns, not {ragged[2]}" if ragged else ""


def chosen_columns(wanted: Sequence[str], there: Sequence[str], where: str) -> Sequence[str]:
    """The wanted attributes or columns, each once; all if none is wanted."""
    for name in wanted:
        if name not in there:
            shown = set(wanted) & set(there)  # otherwise the first line of a table may be a row, which names a person
            hint = f"known attributes: {', '.join(there)}" if shown else "the first line must name the columns"
            raise ScenarioError(f"{where} has no attribute {name!r}", hint)
    return list(dict.fromkeys(wanted)) or there


def encoded(column: pa.ChunkedArray) -> tuple[list[str], Values]:
    """The different values of a column, and for each row the place of its value among them."""
    found = column.combine_chunks().dictionary_encode()
    return found.dictionary.to_pylist(), found.indices.to_numpy().astype(np.int64)


def survey_values(
    path: Path, survey: Survey, positions: Mapping[str, tuple[str, str]] | None = None, metres: bool = False
) -> dict[str, Values]:
    """The values of a survey's attributes, by their places in it.

    `positions` has the two columns of an attribute's position; without them a column has the names of values.
    """
    table, values = read_table(path), dict[str, Values]()
    for attribute in survey.attributes:
        pair = (positions or {}).get(attribute.name, (attribute.name,))
        chosen_columns(pair, table.column_names, str(path))
        first, *second = (table[column].combine_chunks() for column in pair)
        found = cells(first, second[0], attribute, metres) if second else places(first, attribute)
        unknown = int((found == UNKNOWN).sum())
        if unknown:
            raise ScenarioError(
                f"{path}: {unknown:,} of {len(table):,} rows have no value of {attribute.name!r} that the survey lists",
                "leave them out, list all values in the survey, or make its grid larger",
            )
        values[attribute.name] = found.astype(np.int64)
    return values
