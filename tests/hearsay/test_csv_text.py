"""CSV for spreadsheets: times are local, and texts are no formulas."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.csv

from hearsay.reports.table_files import csv_rows
from protocols.survey_text import parse_survey

CALENDAR = parse_survey(
    "{id: a, start: 2026-03-28T00:00:00+01:00, time_zone: Europe/Berlin, period: 1d, eps: 1, "
    "attributes: [{name: a, values: [x, y]}]}"
).calendar


def test_texts_that_begin_like_formulas_have_an_apostrophe() -> None:
    texts = pa.array(["=1+1", "+x", "-", "@me", "a=b", None])
    found = csv_rows(CALENDAR, pa.table({"text": texts, "n": [0.5] * 6})).decode().splitlines()
    assert found == ['"\'=1+1",0.5', '"\'+x",0.5', '"\'-",0.5', '"\'@me",0.5', '"a=b",0.5', ",0.5"]


def test_times_are_local_and_empty_where_they_are_not_known() -> None:
    winter, summer = (datetime(2026, 3, day, 23, tzinfo=UTC) for day in (27, 29))
    times = pa.array([winter, None, summer], pa.timestamp("us", tz="UTC"))
    found = csv_rows(CALENDAR, pa.table({"at": times, "n": [1] * 3}))
    assert found == b'"2026-03-28T00:00:00+01:00",1\n,1\n"2026-03-30T01:00:00+02:00",1\n'
