"""Files say what the report says."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from analytics.mobility import MobilityReport, WindowReport, with_changes, with_truth
from analytics.mobility.output.tables import tables
from analytics.windows import Window
from hearsay.reports.files import write_files
from producers.scenarios import scenario
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.helpers.published import publish
from tests.helpers.town import live, truths


@pytest.fixture(scope="module")
def report() -> MobilityReport:
    town = scenario("commuters", devices=800, periods=30, rows=2, columns=2)
    flows = ", ".join(f"'{value}'" for value in town.attributes["transition"])
    scheme = Scheme(
        parse_survey(
            f"""{{id: town, start: 2026-01-05T00:00:00Z, period: 1h, horizon: 24, minimum: 100, eps: 4, solution: spl,
                attributes: [
                {{name: area, role: area, values: [r0c0, r0c1, r1c0, r1c1], groups: {{north: [r0c0, r0c1]}}}},
                {{name: transition, role: transition, values: [{flows}]}},
                {{name: dwell, role: dwell, range: {{first: 1, last: 8}}}}]}}"""
        )
    )
    truth = truths(scheme, town, [Window(25, 25)])
    return with_changes(with_truth(publish(live(scheme, town)), truth), baseline=range(24))


def test_every_fact_of_the_report_is_one_row_of_a_table(report: MobilityReport) -> None:
    flat = {name: table.to_pylist() for name, table in tables(report).items()}
    attributes = [attribute for window in report.windows for attribute in window.attributes]
    assert len(flat["visitors"]) == len(report.windows)
    assert len(flat["values"]) == sum(len(attribute.values) for attribute in attributes)
    assert len(flat["groups"]) == sum(len(attribute.groups) for attribute in attributes)
    assert len(flat["flows"]) == sum(len(attribute.flows) for attribute in attributes)
    window = report.window(25, 25)
    area = window.attribute("area").values[0]
    row = next(row for row in flat["values"] if row["first"] == row["last"] == 25 and row["value"] == area.value)
    assert row["people"] == area.people.value and row["people_high"] == area.people.high
    assert area.change and row["change"] == area.change.percent.value
    assert row["change_against"] == area.change.against and row["truth"] == area.truth
    assert area.smoothed and row["smoothed"] == area.smoothed.value and row["smoothed_error"] == area.smoothed.error
    dwell = next(row for row in flat["dwell"] if row["first"] == 25)
    summary = window.attribute("dwell").dwell
    assert summary and summary.quartiles and dwell["quartiles_2"] == summary.quartiles[1]


def test_csv_and_parquet_files_hold_the_tables(report: MobilityReport, tmp_path: Path) -> None:
    flat = tables(report)
    for path in write_files(report, None, None, tmp_path):
        assert pq.read_table(path).equals(flat[path.stem])
    for path in write_files(report, None, tmp_path, None):
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == flat[path.stem].num_rows
        assert list(rows[0]) == flat[path.stem].column_names
    assert {path.name for path in tmp_path.iterdir()} >= {"visitors.csv", "values.csv", "visitors.parquet"}


@pytest.mark.parametrize("value", ["=1+1", "+33", "-5", "@SUM(A1)", "\tx", "plain", "'"])
def test_text_in_csv_is_no_formula_to_a_spreadsheet(report: MobilityReport, value: str, tmp_path: Path) -> None:
    written = report.model_copy(update={"windows": tuple(_renamed(window, value) for window in report.windows)})
    write_files(written, None, tmp_path, None)
    with (tmp_path / "values.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["value"] for row in rows} == {value if value in ("plain", "'") else f"'{value}"}
    assert any(row["share"].startswith("-") or float(row["share"]) >= 0 for row in rows), "numbers stay numbers"


def _renamed(window: WindowReport, value: str) -> WindowReport:
    """The window, with every value of its attributes called `value`."""
    attributes = [
        attribute.model_copy(
            update={"values": tuple(one.model_copy(update={"value": value}) for one in attribute.values)}
        )
        for attribute in window.attributes
    ]
    return window.model_copy(update={"attributes": tuple(attributes)})
