"""`hearsay synthesize`: records from published results, in files that say what they follow."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from typer.testing import Result

import hearsay
from hearsay.reports.files import latest, mobility_of, open_results
from lab.commands.synthesize import write_records
from lab.learning.synthesis import synthetic_records
from producers.files import read_table
from protocols.errors import ResultsError, SettingsError
from protocols.survey_text import parse_survey
from tests.lab.calling import call as call_command
from tests.lab.calling import figures_of

SURVEY = """
{id: pairs, start: 2026-01-05T00:00:00Z, period: 1d, eps: 5, clock: source, horizon: 7, attributes: [
  {name: age, values: [young, middle, old], share: 0.1}, {name: area, values: [N, S, W, E], share: 0.1},
  {name: plan, values: [a, b]}], crosses: [{of: [age, area], share: 0.6}]}"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("synthesize") / "data"
    hearsay.run(parse_survey(SURVEY), devices=2_000, periods=2, data=root)
    return root


def call(data: Path, options: str) -> Result:
    return call_command(f"synthesize pairs --data {data} {options}")


def about(data: Path, options: str) -> dict[str, Any]:
    return figures_of(f"synthesize pairs --data {data} {options}")


def test_a_csv_file_says_what_it_follows_above_its_records(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    result = call(data, f"--rows 500 --out {path}")
    assert result.exit_code == 0, result.output
    assert "costs no budget" in result.stdout and f"wrote {path}" in result.stdout.replace("\n", " ")
    lines = path.read_text().splitlines()
    comments = [line for line in lines if line.startswith("# ")]
    assert any("measured pair age*area: total variation" in line for line in comments)
    assert any("all other pairs were not measured" in line for line in comments)
    assert lines[len(comments)] == '"age","area","plan"' and len(lines) == len(comments) + 1 + 500
    assert read_table(path).column_names == ["age", "area", "plan"], "evaluate reads it, too"


def test_a_parquet_file_has_the_same_as_metadata(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    found = about(data, f"--rows 1000 --seed 3 --out {path}")
    table = pyarrow.parquet.read_table(path)
    kept = json.loads(table.schema.metadata[b"hearsay"])
    assert kept == {name: figure for name, figure in found.items() if name != "file"}
    assert table.num_rows == 1000 and set(table["plan"].to_pylist()) == {"a", "b"}
    assert found["budget"] == 0 and [pair["of"] for pair in found["measured_pairs"]] == [["age", "area"]]
    assert found["independent_pairs"] == [["age", "plan"], ["area", "plan"]]
    assert 0 <= found["measured_pairs"][0]["total_variation"] < 0.2


def test_the_library_draws_the_same_records_as_the_command(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    about(data, f"--rows 300 --seed 4 --period 1 --out {path}")
    drawn = hearsay.synthesize(data, rows=300, window=(1, 1), seed=4)
    assert drawn.equals(pyarrow.parquet.read_table(path), check_metadata=True)
    with pytest.raises(SettingsError, match="0 rows"):
        hearsay.synthesize(data, rows=0)
    with pytest.raises(ResultsError, match="no report of period 7"):
        hearsay.synthesize(data, window=(7, 7))
    assert isinstance(call(data, f"--out {tmp_path}/records.xlsx").exception, SettingsError)


def test_what_is_suppressed_is_left_out_and_named(data: Path, tmp_path: Path) -> None:
    with open_results("pairs", data, None) as (results, _):
        report = mobility_of(results, "pairs")
    window = latest(report)
    some = tuple(one for one in window.attributes if one.name == "area")
    hidden = tuple(
        one.model_copy(update={"values": None, "n": None, "suppressed": "minimum"})
        for one in window.attributes
        if one.name != "area"
    )
    thin = window.model_copy(update={"attributes": (*some, *hidden)})
    found = synthetic_records(report, thin, 100, seed=0)
    assert found.column_names == ["area"]
    write_records(found, tmp_path / "records.csv")
    assert "left out, because nothing is published about them: age, plan" in (tmp_path / "records.csv").read_text()
    with pytest.raises(ResultsError, match="nothing is published"):
        synthetic_records(report, window.model_copy(update={"attributes": hidden}), 100, seed=0)
