"""Tables as CSV for spreadsheets: times are local, and no text is taken for a formula.

Every cell is as pyarrow's own CSV writer has it. That one writes each number anew; the columns of a report repeat the
same few, and here each of them is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from analytics.mobility import Part
from protocols.survey import Calendar

FORMULAS = pa.array(["=", "+", "-", "@", "\t", "\r"])
"""How a cell begins that a spreadsheet takes for a formula."""
Texts = Any
"""The text that all rows have (str), or one for each (an Arrow array)."""


def csv_file(path: Path, schema: pa.Schema) -> BinaryIO:
    """A file that begins with the names of the columns."""
    file = path.open("wb")
    file.write(csv_head(schema))
    return file


def csv_head(schema: pa.Schema) -> bytes:
    """The line with the names of the columns."""
    return (",".join(f'"{name}"' for name in schema.names) + "\n").encode()


def csv_rows(calendar: Calendar, part: Part) -> Any:
    """The lines of some rows, as bytes or a buffer."""
    if not part.rows:
        return b""
    *cells, last = _merged(_texts(calendar, column) for column in part.columns.values())
    if not cells and isinstance(last, str):
        return f"{last}\n".encode() * part.rows
    last = f"{last}\n" if isinstance(last, str) else _joined(last, "\n", "")
    return _joined(*cells, last, ",").buffers()[2]


def _joined(*parts: Texts) -> pa.Array:
    """Texts of the same row behind each other, with the last part between them."""
    return pc.binary_join_element_wise(*parts, null_handling="replace", null_replacement="")


def _merged(cells: Iterable[Texts]) -> Iterator[Texts]:
    """The same cells, where those that are the same in all rows are one if they follow each other."""
    for constant, some in groupby(cells, lambda cell: isinstance(cell, str)):
        if constant:
            yield ",".join(map(str, some))
        else:
            yield from some


def _texts(calendar: Calendar, column: pa.Array | pa.Scalar) -> Texts:
    """A column as text."""
    if isinstance(column, pa.Scalar):
        return _written(calendar, pa.repeat(column, 1))[0].as_py() or ""
    if pa.types.is_string(column.type):
        return _written(calendar, column)
    encoded = column.dictionary_encode()  # each different number is written once
    return _written(calendar, encoded.dictionary).take(encoded.indices)


def _written(calendar: Calendar, entries: pa.Array) -> pa.Array:
    """Entries as text, between quotes unless they are numbers."""
    if pa.types.is_timestamp(entries.type):
        known = entries.cast(pa.int64()).to_pylist()
        entries = pa.array([None if at is None else calendar.local(at).isoformat() for at in known], pa.string())
    elif pa.types.is_string(entries.type):
        entries = _without_formulas(entries)
    else:
        return entries.cast(pa.string())
    if pc.any(pc.match_substring(entries, '"')).as_py():
        entries = pc.replace_substring(entries, '"', '""')
    return pc.binary_join_element_wise('"', entries, '"', "")


def _without_formulas(texts: pa.Array) -> pa.Array:
    """Texts that a spreadsheet does not take for formulas: those that it would begin with an apostrophe."""
    formula = pc.is_in(pc.utf8_slice_codeunits(texts, 0, 1), value_set=FORMULAS)
    return pc.if_else(formula, _joined("'", texts, ""), texts) if pc.any(formula).as_py() else texts
