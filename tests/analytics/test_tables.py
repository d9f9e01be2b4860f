"""Files say what the report says."""

import csv
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import analytics.mobility.report_tables
from analytics.estimation import shortened
from analytics.estimation.estimates import Estimates
from analytics.mobility import MobilityReport, tables_in_parts, with_changes, with_nowcasts, with_truth
from analytics.mobility.model import Amount, AmountQuantile, Quantity, measured, quantities
from analytics.mobility.report_tables import tables
from analytics.windows import Window
from hearsay.reports.table_files import for_spreadsheets, write_tables
from hearsay.running.simulating import count_windows
from producers.scenarios import scenario
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.helpers.published import publish
from tests.helpers.town import live


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
    truth = count_windows(town, [Window(25, 25)])
    made = with_changes(with_truth(publish(live(scheme, town)), truth), baseline=range(24))
    now = quantities(Estimates(*np.random.default_rng(0).random((4, 4))))
    return with_nowcasts(made, {(25, "area", "values"): now})


def test_every_fact_of_the_report_is_one_row_of_a_table(report: MobilityReport) -> None:
    flat = {name: table.to_pylist() for name, table in tables(report).items()}
    attributes = [attribute for window in report.windows for attribute in window.attributes]
    assert len(flat["visitors"]) == len(report.windows)
    known = [(report.asked(attribute.name), attribute) for attribute in attributes if attribute.values]
    assert len(flat["values"]) == sum(len(asked.values) for asked, _ in known)
    assert len(flat["groups"]) == sum(len(asked.groups) for asked, _ in known)
    assert len(flat["flows"]) == sum(len(asked.values) for asked, _ in known if asked.role == "transition")
    window = report.window(25, 25)
    area = window.attribute("area").values
    assert area and area.change and area.nowcast and area.truth is not None and window.visitors
    people, change = (
        quantities(shortened(measured(numbers))) for numbers in (area.people(window.visitors), area.change.percent)
    )
    for place, value in enumerate(report.asked("area").values):
        row = next(row for row in flat["values"] if row["first"] == row["last"] == 25 and row["value"] == value)
        assert (row["people"], row["people_high"]) == (people.value[place], people.high[place])
        assert row["change"] == change.at(place).value
        assert (row["change_against"], row["truth"]) == (area.change.against, area.truth[place])
        assert (row["nowcast"], row["nowcast_error"]) == (area.nowcast.value[place], area.nowcast.error[place])
    flow = next(row for row in flat["flows"] if row["first"] == row["last"] == 25)
    transition = window.attribute("transition").values
    assert transition and flow["people"] == shortened(measured(transition.people(window.visitors))).value[0]
    assert [flow["origin"], flow["destination"]] == report.asked("transition").values[0].split(">")
    trip, trips = (
        next(row for row in flat["trips"] if row["first"] == row["last"] == 25),
        window.attribute("transition").trips,
    )
    assert trips and (trip["area"], len(flat["trips"])) == (
        report.asked("transition").places[0],
        len(flat["flows"]) / 4,
    )
    assert trip["ended_high"] == pytest.approx(trips.ended.high[0] * (window.visitors.value or 0), rel=0.02)
    dwell = next(row for row in flat["dwell"] if row["first"] == 25)
    summary = window.attribute("dwell").dwell
    assert summary and summary.quartiles and dwell["quartiles_2"] == summary.quartiles[1]


def test_long_tables_are_made_in_parts_of_limited_length(
    report: MobilityReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tables(report)
    monkeypatch.setattr(analytics.mobility.report_tables, "PART_ROWS", 3)
    for name, parts in tables_in_parts(report).items():
        found = list(parts)
        assert pa.concat_tables([part.table() for part in found]).equals(whole[name])
        if name in {"values", "groups", "flows", "crosses"}:
            assert max(part.rows for part in found) <= 3
            assert len(found) > len(whole[name]) / 3


def test_csv_and_parquet_files_hold_the_tables(report: MobilityReport, tmp_path: Path) -> None:
    flat = tables(report)
    for path in write_tables(report, None, tmp_path)[:-1]:
        assert pq.read_table(path).equals(flat[path.stem])
    for path in write_tables(report, tmp_path, None)[:-1]:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == flat[path.stem].num_rows
        assert list(rows[0]) == flat[path.stem].column_names
    assert {path.name for path in tmp_path.iterdir()} >= {"visitors.csv", "values.csv", "visitors.parquet"}


def test_a_file_beside_the_tables_explains_every_column(report: MobilityReport, tmp_path: Path) -> None:
    *_, columns = write_tables(report, tmp_path, None)
    with columns.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    listed = [(name, column) for name, table in tables(report).items() if len(table) for column in table.column_names]
    assert [(row["table"], row["column"]) for row in rows] == listed
    assert all(row["unit"] and row["meaning"] for row in rows)


@pytest.mark.parametrize("value", ["=1+1", "+33", "-5", "@SUM(A1)", "\tx", "plain", "'"])
def test_text_in_csv_is_no_formula_to_a_spreadsheet(report: MobilityReport, value: str, tmp_path: Path) -> None:
    texts = [value + ">x" * (asked.role == "transition") for asked in report.attributes]
    every = zip(report.attributes, texts, strict=True)
    renamed = [asked.model_copy(update={"values": (text,) * len(asked.values)}) for asked, text in every]
    written = report.model_copy(update={"attributes": tuple(renamed)})
    write_tables(written, tmp_path, None)
    with (tmp_path / "values.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["value"].removesuffix(">x") for row in rows} == {value if value in ("plain", "'") else f"'{value}"}
    assert any(row["share"].startswith("-") or float(row["share"]) >= 0 for row in rows), "numbers stay numbers"


def test_times_are_local_and_empty_where_they_are_not_known() -> None:
    calendar = parse_survey(
        "{id: a, start: 2026-03-28T00:00:00+01:00, time_zone: Europe/Berlin, period: 1d, eps: 1, "
        "attributes: [{name: a, values: [x, y]}]}"
    ).calendar
    winter, summer = (datetime(2026, 3, day, 23, tzinfo=UTC) for day in (27, 29))
    times = pa.array([winter, None, summer], pa.timestamp("us", tz="UTC"))
    found = for_spreadsheets(calendar, pa.table({"at": times}))
    assert found["at"].to_pylist() == ["2026-03-28T00:00:00+01:00", None, "2026-03-30T01:00:00+02:00"]


def test_an_amount_is_a_row_for_each_of_its_numbers(report: MobilityReport) -> None:
    number = Quantity(value=4, error=1, low=2, high=6)
    median = AmountQuantile(at=0.5, value=3, low=1, high=5)
    window = report.window(25, 25)
    part = window.attribute("dwell").model_copy(
        update={"amount": Amount(mean=number, sum=number, off=0, quantiles=(median,))}
    )
    made = report.model_copy(update={"windows": (window.model_copy(update={"attributes": (part,)}),)})
    rows = [(row["statistic"], row["number"], row["number_high"]) for row in tables(made)["amounts"].to_pylist()]
    assert rows == [("mean", 4, 6), ("sum", 4, 6), ("0.5", 3, 5)]
