"""CSV is what pyarrow's own writer makes of the same table, once times are local and texts are no formulas."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO

import pyarrow as pa
import pyarrow.csv
from hypothesis import given
from hypothesis import strategies as st

from analytics.mobility import Part
from hearsay.reports.csv_text import csv_head, csv_rows
from protocols.survey_text import parse_survey

CALENDAR = parse_survey(
    "{id: a, start: 2026-03-28T00:00:00+01:00, time_zone: Europe/Berlin, period: 1d, eps: 1, "
    "attributes: [{name: a, values: [x, y]}]}"
).calendar
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5).filter(
    lambda text: not text.startswith(("=", "+", "-", "@", "\t", "\r"))
)
cells = {
    "number": (pa.float64(), st.floats(allow_nan=False)),
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "text": (pa.string(), texts),
    "truth": (pa.bool_(), st.booleans()),
}


@given(st.data(), st.integers(0, 4), st.sets(st.sampled_from(sorted(cells)), min_size=1))
def test_rows_are_those_of_pyarrow(data: st.DataObject, rows: int, constant: set[str]) -> None:
    columns = {}
    for name, (kind, entries) in cells.items():
        if name in constant:
            columns[name] = pa.scalar(data.draw(st.none() | entries), kind)
        else:
            found = data.draw(st.lists(st.none() | entries, min_size=rows, max_size=rows))
            columns[name] = pa.array(found, kind)
    part, wanted = Part(rows, columns), BytesIO()
    pyarrow.csv.write_csv(part.table(), wanted)
    assert csv_head(part.schema) + bytes(csv_rows(CALENDAR, part)) == wanted.getvalue()


def test_times_are_local_and_empty_where_they_are_not_known() -> None:
    winter, summer = (datetime(2026, 3, day, 23, tzinfo=UTC) for day in (27, 29))
    times = pa.array([winter, None, summer], pa.timestamp("us", tz="UTC"))
    found = bytes(csv_rows(CALENDAR, Part(3, {"at": times, "n": pa.scalar(1)})))
    assert found == b'"2026-03-28T00:00:00+01:00",1\n,1\n"2026-03-30T01:00:00+02:00",1\n'
