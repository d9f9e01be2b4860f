"""What cannot be replayed is refused with a sentence that says what, where and what to do, and names nobody."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from producers.files import ColumnMapping, FileFormat
from producers.replay import Rule
from producers.replay.quality import Fault
from protocols.errors import ReplayError, SurveyError
from tests.helpers.sinks import KeepingSink
from tests.producers.events import (
    COLUMNS,
    EVENTS,
    OPTIONS,
    START,
    MakeReplay,
    computed,
    history,
    write,
)

A_DAY = history(10, 1)
ROWS = [event.row() for event in A_DAY]


def test_a_column_that_is_not_there_is_named_with_those_that_are(replay: MakeReplay, tmp_path: Path) -> None:
    path = write(tmp_path / EVENTS, [])
    with pytest.raises(ReplayError, match=r"no column 'subscriber' \(it has msisdn, at, cell, minutes\)"):
        replay(path, KeepingSink(), replace(OPTIONS, columns=replace(COLUMNS, person="subscriber"))).run()
    with pytest.raises(SurveyError, match="no attribute 'colour'"):
        replay(path, KeepingSink(), replace(OPTIONS, columns=ColumnMapping("msisdn", "at", {"colour": "cell"})))


@pytest.mark.parametrize("name", ["events.csv", "events.parquet"])
def test_two_columns_of_one_name_are_refused(replay: MakeReplay, tmp_path: Path, name: str) -> None:
    columns = [pa.array([cell]) for cell in ("p-4711", START.isoformat(), "north", "south", "1")]
    table, path = pa.Table.from_arrays(columns, names=["msisdn", "at", "cell", "cell", "minutes"]), tmp_path / name
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
    with pytest.raises(ReplayError, match="has 2 columns 'cell'"):
        replay(path, KeepingSink()).run()


def test_a_parquet_file_that_is_damaged_inside_is_named(replay: MakeReplay, tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    rows = [e.row() for e in history(10, 1)]
    names = ["msisdn", "at", "cell", "minutes"]
    pyarrow.parquet.write_table(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), path)
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(ReplayError, match="cannot be read as Parquet from about row 1 on"):
        replay(path, KeepingSink()).run()


def test_a_file_without_a_line_of_names_does_not_have_its_first_row_quoted(replay: MakeReplay, tmp_path: Path) -> None:
    path = tmp_path / EVENTS
    path.write_text(f"p-4711,{START.isoformat()},north,1\n" * 3)
    with pytest.raises(
        ReplayError, match=r"none of the columns msisdn, at, cell, minutes .*first line must name"
    ) as caught:
        replay(path, KeepingSink()).run()
    assert "p-47" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("events.csv", b"", "it is empty"),
        ("events.csv", b"msisdn,at,cell,minutes", "its first line has no end"),
        ("events.csv.gz", b"msisdn,at,cell,minutes\n", "compressed as its suffix says"),
    ],
)
def test_a_file_that_is_no_csv_is_refused_with_what_may_help(
    replay: MakeReplay, tmp_path: Path, name: str, content: bytes, advice: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ReplayError, match=f"cannot be read as CSV.*{advice}"):
        replay(tmp_path / name, KeepingSink()).run()


@pytest.mark.parametrize("delimiter", ["", ";;", "é", "\n", '"'])
def test_an_invalid_delimiter_is_refused(replay: MakeReplay, tmp_path: Path, delimiter: str) -> None:
    with pytest.raises(ReplayError, match="is not a valid delimiter"):
        replay(write(tmp_path / EVENTS, ROWS), KeepingSink(), replace(OPTIONS, form=FileFormat(delimiter)))


def test_a_rule_for_an_attribute_that_is_not_asked_for_is_refused(replay: MakeReplay, tmp_path: Path) -> None:
    with pytest.raises(SurveyError, match=r"no attribute 'aera' \(it has area, dwell\)"):
        replay(write(tmp_path / EVENTS, ROWS), KeepingSink(), replace(OPTIONS, rules={"aera": Rule.MOST}))


def parquet(path: Path, **columns: Any) -> Path:
    """The day as typed columns, some of them others than usual."""
    usual = dict(zip(["msisdn", "at", "cell", "minutes"], map(list, zip(*ROWS, strict=True)), strict=True))
    pyarrow.parquet.write_table(pa.table(usual | columns), path)
    return path


@pytest.mark.parametrize("cell", [{"p": "p-4711"}, ["p-4711"]])
def test_a_column_that_is_neither_text_nor_numbers_is_named(replay: MakeReplay, tmp_path: Path, cell: Any) -> None:
    path = parquet(tmp_path / "events.parquet", msisdn=[cell] * len(ROWS))
    with pytest.raises(ReplayError, match=r"column 'msisdn' of .* holds .*, not text or numbers") as caught:
        replay(path, KeepingSink()).run()
    assert "p-47" not in str(caught.value)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_text_is_text_however_it_is_laid_out(replay: MakeReplay, tmp_path: Path, kind: pa.DataType) -> None:
    names = ["msisdn", "at", "cell", "minutes"]
    cells = {n: pa.array([f" {row[i]}" for row in ROWS]).cast(kind) for i, n in enumerate(names)}
    assert replay(parquet(tmp_path / "events.parquet", **cells), KeepingSink()).run().reports == len(computed(A_DAY))


def test_a_year_of_five_digits_is_a_bad_time(replay: MakeReplay, tmp_path: Path) -> None:
    path = parquet(tmp_path / "events.parquet", at=pa.array([1 << 39] * len(ROWS)))
    summary = replay(path, KeepingSink(), replace(OPTIONS, until=None)).run()
    assert (summary.faults[Fault.BAD_TIME].count, summary.reports) == (len(ROWS), 0)


def test_any_tolerance_may_be_given(replay: MakeReplay, tmp_path: Path) -> None:
    options = replace(OPTIONS, tolerance=timedelta.max)
    assert replay(write(tmp_path / EVENTS, ROWS), KeepingSink(), options).run().reports == len(computed(A_DAY))


def test_a_line_with_two_unknown_values_is_named_once(replay: MakeReplay, tmp_path: Path) -> None:
    path = write(tmp_path / EVENTS, [["a", START.isoformat(), "atlantis", "long"]])
    found = replay(path, KeepingSink()).run().faults[Fault.UNKNOWN_VALUE]
    assert (found.count, [line for _, line in found.places]) == (2, [2])
