"""Tables of people: one row per person, and the names of the columns in the first line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from producers.files import UNKNOWN, cells, places, read_table
from protocols.arrays import Values
from protocols.errors import ScenarioError
from protocols.survey import Survey

MOST_VALUES = 10_000  # a column with more different values is an identifier or a number, not an answer


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
