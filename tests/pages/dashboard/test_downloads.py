"""Downloads are the tables of `hearsay report`."""

import json
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from analytics.mobility import tables
from hearsay.reports.files import mobility_of
from hearsay.reports.serving import Published
from pages.dashboard import Source
from stream_app.local import LocalStore
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.dashboards import Running, ask, dashboard
from views.reading import Results


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with collecting(tmp_path / "collector", small_survey(values=("=1+1", "green", "blue"))) as (colours,):
        colours.finish([30, 20, 10], [3, 2, 1])  # in the second too few
    published = Published([], tmp_path, None)
    with dashboard(Source(published.follow), download=published.download) as found:
        yield found


def get(running: Running, path: str, status: int = 200) -> bytes:
    found, _, body = ask(running, f"/download/colours/{path}")
    assert found == status, body
    return body


def test_every_table_in_every_format(running: Running, tmp_path: Path) -> None:
    with closing(LocalStore.existing(tmp_path / "collector")) as store:
        expected = tables(mobility_of(Results(store), "colours"))
    for name, table in expected.items():
        assert pyarrow.parquet.read_table(BytesIO(get(running, f"{name}.parquet"))).to_pydict() == table.to_pydict()
        rows = json.loads(get(running, f"{name}.json"))
        assert [list(row) for row in rows] == [table.column_names] * len(table)
        if len(table):
            assert len(pyarrow.csv.read_csv(BytesIO(get(running, f"{name}.csv")))) == len(table)
    histograms = pyarrow.parquet.read_table(BytesIO(get(running, "histograms.parquet")))
    assert histograms["value"].to_pylist() == ["=1+1", "green", "blue"] * 2


def test_one_attribute_alone(running: Running) -> None:
    rows = json.loads(get(running, "values.json?attribute=colour"))
    assert rows and {row["attribute"] for row in rows} == {"colour"}
    assert json.loads(get(running, "values.json?attribute=size")) == []
    assert b"not about attributes" in get(running, "visitors.json?attribute=colour", 404)


def test_suppressed_values_are_in_no_download(running: Running) -> None:
    for row in json.loads(get(running, "visitors.json")):
        assert (row["visitors"] is None) == (row["suppressed"] is not None) == (row["last"] == 1)
    for row in json.loads(get(running, "histograms.json")):
        assert (row["n"] is None) == (row["period"] == 1) == (row["estimate"] is None)


def test_a_spreadsheet_finds_no_formula(running: Running) -> None:
    assert b'"\'=1+1"' in get(running, "values.csv")


def test_a_file_has_a_name(running: Running) -> None:
    _, headers, _ = ask(running, "/download/colours/values.csv?attribute=col%22our")
    assert headers["content-disposition"] == 'attachment; filename="colours-values-col-our.csv"'


@pytest.mark.parametrize("path", ["nothing.csv", "values.exe", "../../etc/passwd.csv"])
def test_there_is_nothing_else(running: Running, path: str) -> None:
    get(running, path, 404)
