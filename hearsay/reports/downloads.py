"""Tables of published results as files that a browser saves: the tables that `hearsay report` writes."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from pydantic_core import to_json

from analytics.mobility import PART_ROWS, MobilityReport, Part, tables
from hearsay.reports.csv_text import csv_head, csv_rows
from hearsay.reports.files import chosen
from hearsay.reports.sources import mobility_of
from pages.dashboard import Wanted
from protocols.errors import ResultsError
from protocols.survey import Calendar
from views.reading import Results
from views.results import histogram_table

HISTOGRAMS = "histograms"


def download(results: Results, wanted: Wanted, adjust: Callable[[MobilityReport], MobilityReport]) -> bytes:
    """The bytes of a table. Raises ResultsError where there is nothing of the kind."""
    if wanted.table == HISTOGRAMS:
        table = histogram_table(results.histograms(wanted.survey))
    else:
        found = tables(adjust(mobility_of(results, wanted.survey)))
        if wanted.table not in found:
            raise ResultsError(f"there is no table {wanted.table!r}", f"there are {', '.join([*found, HISTOGRAMS])}")
        table = found[wanted.table]
    if wanted.attribute is not None:
        if "attribute" not in table.column_names:
            raise ResultsError(f"the table {wanted.table!r} is not about attributes", "ask for it without one")
        table = table.filter(pc.equal(table["attribute"], wanted.attribute))
    return FORMATS[wanted.format](table, chosen(results, wanted.survey).calendar)


def _csv(table: pa.Table, calendar: Calendar) -> bytes:
    """As `hearsay report` writes it: with local times."""
    parts = (Part.of(table.slice(first, PART_ROWS)) for first in range(0, len(table), PART_ROWS))
    return b"".join([csv_head(table.schema), *(csv_rows(calendar, part) for part in parts)])


def _parquet(table: pa.Table, calendar: Calendar) -> bytes:
    file = BytesIO()
    pyarrow.parquet.write_table(table, file)
    return file.getvalue()


def _json(table: pa.Table, calendar: Calendar) -> bytes:
    """One object for each row."""
    return to_json(table.to_pylist(), inf_nan_mode="null") + b"\n"


FORMATS: dict[str, Callable[[pa.Table, Calendar], bytes]] = {"csv": _csv, "parquet": _parquet, "json": _json}
