"""Tables as CSV for spreadsheets: times are local, and no text is taken for a formula."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from analytics.mobility import Part
from protocols.survey import Calendar

FORMULAS = pa.array(["=", "+", "-", "@", "\t", "\r"])
"""How a cell begins that a spreadsheet takes for a formula."""
WITHOUT_HEAD = pyarrow.csv.WriteOptions(include_header=False)


def csv_file(path: Path, schema: pa.Schema) -> BinaryIO:
    """A file that begins with the names of the columns."""
    file = path.open("wb")
    file.write(csv_head(schema))
    return file


def csv_head(schema: pa.Schema) -> bytes:
    """The line with the names of the columns."""
    return (",".join(f'"{name}"' for name in schema.names) + "\n").encode()


def csv_rows(calendar: Calendar, part: Part) -> bytes:
    """The lines of some rows."""
    table, text = part.table(), BytesIO()
    shown = [_shown(calendar, column.combine_chunks()) for column in table.columns]
    pyarrow.csv.write_csv(pa.table(shown, names=table.column_names), text, WITHOUT_HEAD)
    return text.getvalue()


def _shown(calendar: Calendar, entries: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(entries.type):
        known = entries.cast(pa.int64()).to_pylist()
        return pa.array([None if at is None else calendar.local(at).isoformat() for at in known], pa.string())
    if not pa.types.is_string(entries.type):
        return entries
    formula = pc.is_in(pc.utf8_slice_codeunits(entries, 0, 1), value_set=FORMULAS)
    return pc.if_else(formula, pc.binary_join_element_wise("'", entries, ""), entries)
