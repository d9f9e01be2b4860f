"""Fleets, devices and what is estimated from their reports, from `import hearsay`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hearsay
from hearsay.library.estimating import FIGURES
from protocols.errors import ScenarioError, SurveyError, WireError
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, encode_clock
from tests.hearsay.library.surveys import ANY, KEY, SECRET, survey, truth
from views.local import collector
from views.reading import Results
from views.results import histogram_table


@pytest.mark.parametrize(
    "terms",
    [
        "eps_inf: 6, eps_1: 4",
        "eps_inf: 12, eps_1: 8, solution: spl",
        "eps_inf: 6, eps_1: 4, solution: rs+fd",
        "eps: 4",
        "eps: 6, one_in: 3",
        "eps: 12, one_in: 3, solution: spl",
        "eps_inf: 4",
    ],
)
def test_a_fleets_reports_give_its_truth_back(terms: str) -> None:
    table = hearsay.estimate(survey(terms), hearsay.Fleet(survey(terms), 10_000, SECRET).report(0, truth()))
    rows = table.to_pylist()
    assert [row["value"] for row in rows] == ["red", "green", "blue", *map(str, range(24))]
    for row in rows:
        share = {"red": 0.6, "green": 0.1, "blue": 0.3}.get(row["value"], 1 / 24)
        assert abs(row["estimate"] - share) < 4 * row["error"], row
        assert row["low"] < row["estimate"] < row["high"]
    for name in ("colour", "hour"):
        assert sum(row["consistent"] for row in rows if row["attribute"] == name) == pytest.approx(1)


@pytest.mark.parametrize(
    "terms",
    [
        "eps_inf: 4, eps_1: 2",
        "eps_inf: 8, eps_1: 4, solution: spl",
        "eps: 2, one_in: 3",
        "eps: 4, one_in: 3, solution: rs+fd",
    ],
)
def test_a_collector_publishes_the_same_of_the_same_reports(terms: str, tmp_path: Path) -> None:
    fleet = hearsay.Fleet(survey(terms), 10_000, SECRET)
    some = np.arange(0, 10_000, 3)
    periods = [
        fleet.report(0, truth()),
        fleet.report(2, {name: np.array(column)[some] for name, column in truth().items()}, some),
    ]
    with collector(tmp_path, [survey(terms)], KEY, KEY) as app:
        for period, frames in zip((0, 2), periods, strict=True):
            for frame in frames:
                app.send(0, FRAME, frame)
            app.send(0, CLOCK, encode_clock(Clock("buttons", period), KEY))
        app.flush()
        assert not any(any(counter.rejects.values()) for counter in app._counters)
        published = [final for final in Results(app.store).histograms("buttons") if final.n]
    estimated = hearsay.estimate(survey(terms), [frame for each in periods for frame in each])
    table = histogram_table(published).drop_columns(["suppressed", "kind", *OF_CROSSES])
    assert table.schema == estimated.schema
    for name in estimated.column_names:
        if name in FIGURES:  # with the decimals that their errors carry
            same = np.abs(table[name].to_numpy() - estimated[name].to_numpy()) <= estimated["error"].to_numpy() / 10
            assert same.all() or table[name].null_count == estimated[name].null_count == len(table)
        else:
            assert table[name] == estimated[name]
    assert published[1].attributes[0].statistics is not None
    assert published[1].attributes[0].statistics.gaps.tolist() == [2]


OF_CROSSES = ["row", "column", "adjusted", "adjusted_error", "adjusted_low", "adjusted_high"]


def test_counts_give_what_reports_give() -> None:
    one_shot = survey("eps: 1")
    reports = hearsay.Fleet(one_shot, 10_000, SECRET).report(0, truth())
    tables = [pa.ipc.open_stream(frame).read_all() for frame in reports]
    colours = [symbol for table in tables if "colour" in table.column_names for symbol in table["colour"].to_pylist()]
    hours = [bits for table in tables if "hour" in table.column_names for bits in table["hour"].to_pylist()]
    bits = np.unpackbits(np.frombuffer(b"".join(hours), np.uint8).reshape(-1, 3), axis=1, bitorder="little")
    counts = {"colour": np.bincount(colours, minlength=3), "hour": bits.sum(axis=0)}
    estimates = hearsay.estimate_counts(one_shot, counts, {"colour": len(colours), "hour": len(hours)})
    assert estimates == hearsay.estimate(one_shot, reports).drop_columns(["period", "begin", "end"])
    with pytest.raises(SurveyError, match="3 values and 2 counts"):
        hearsay.estimate_counts(one_shot, counts | {"colour": [1, 2]}, {"colour": 3, "hour": 3})
    with pytest.raises(SurveyError, match="'hour' has no counts"):
        hearsay.estimate_counts(one_shot, {"colour": [1, 2, 3]}, {"colour": 6})


def report_of(asked: hearsay.Survey, path: Path, **values: object) -> bytes:
    """What a new device reports in period 0."""
    now = asked.bounds(0)[0].timestamp()
    with hearsay.Device(path, now=lambda: now, limits=ANY) as device:
        return device.settle(device.join(Scheme(asked).terms, trust_first_use=True), values).report


def test_reports_of_devices_and_of_fleets_are_estimated_together(tmp_path: Path) -> None:
    every = survey("eps: 12, solution: spl")
    reports = [report_of(every, tmp_path / str(i), colour="red", hour=7) for i in range(20)]
    assert set(json.loads(reports[0])) == {"survey", "fingerprint", "period", "token", "gap", "answers"}
    assert len(set(map(len, reports))) == 1
    reports += hearsay.Fleet(every, 20, SECRET).report(0, {"colour": ["red"] * 20, "hour": [7] * 20})
    shares = {row["value"]: row["estimate"] for row in hearsay.estimate(every, reports).to_pylist()}
    assert shares["red"] > 0.8


def test_one_device_answers_in_its_turn_and_names_no_attribute_otherwise(tmp_path: Path) -> None:
    """Only answers cost: three of them are within the limit, and twelve would not be."""
    turns, answers, limits = survey("eps: 2, one_in: 4"), [], hearsay.Limits(report=2, value=6, year=8)
    now = [0.0]
    with hearsay.Device(tmp_path / "device.db", now=lambda: now[0], limits=limits) as device:
        asked = device.join(Scheme(turns).terms, trust_first_use=True)
        for period in range(12):
            now[0] = turns.bounds(period)[0].timestamp()
            answers.append(json.loads(device.settle(asked, {"colour": "red", "hour": 7}).report)["answers"])
    answered = [period for period, answer in enumerate(answers) if answer]
    assert len(answered) == 3 and {period % 4 for period in answered} == {answered[0]}
    assert all(len(answers[period]) == 1 for period in answered)


def test_with_one_in_answers_are_a_sample_and_counts_alone_do_not_say_of_how_many() -> None:
    turns = survey("eps: 4, one_in: 3, solution: spl")
    reports = hearsay.Fleet(turns, 10_000, SECRET).report(0, truth())
    rows = [row for row in hearsay.estimate(turns, reports).to_pylist() if row["attribute"] == "colour"]
    n = rows[0]["n"]
    assert 3_000 < n < 3_700
    colours = [
        symbol
        for table in (pa.ipc.open_stream(frame).read_all() for frame in reports)
        if "colour" in table.column_names
        for symbol in table["colour"].to_pylist()
    ]
    counts = {"colour": np.bincount(colours, minlength=3), "hour": np.zeros(24)}
    unlimited = hearsay.estimate_counts(turns, counts, {"colour": n, "hour": 0}).to_pylist()[:3]
    for one, other in zip(rows, unlimited, strict=True):
        assert one["estimate"] == other["estimate"] and one["error"] < other["error"]


def test_a_report_that_is_there_twice_counts_once() -> None:
    reports = hearsay.Fleet(survey(), 100, SECRET).report(0, {"colour": ["red"] * 100, "hour": [1] * 100})
    assert hearsay.estimate(survey(), reports * 2) == hearsay.estimate(survey(), reports)


def test_an_attribute_without_answers_has_no_estimates(tmp_path: Path) -> None:
    table = hearsay.estimate(survey(), report_of(survey(), tmp_path / "device", colour="red", hour=3))
    silent = {row["attribute"] for row in table.to_pylist() if row["n"] == 0 and row["estimate"] is row["low"] is None}
    assert len(silent) == 1 and len(table) == 27
    assert len(hearsay.estimate(survey(), [])) == 0


def test_reports_that_do_not_fit_are_refused_with_the_reason(tmp_path: Path) -> None:
    report = report_of(survey(), tmp_path / "device", colour="red", hour=3)
    with pytest.raises(WireError, match="report 1: wrong-fingerprint"):
        hearsay.estimate(survey(), [report, report.replace(Scheme(survey()).fingerprint.encode(), b"0" * 32)])
    with pytest.raises(WireError, match="report 0: undecodable"):
        hearsay.estimate(survey(), b"not a frame")
    with pytest.raises(WireError, match="report 0, row 0: bad-gap"):
        hearsay.estimate(survey(), report.replace(b'"gap":"0003"', b'"gap":"0009"'))


def test_devices_report_once_in_a_period_and_periods_ascend() -> None:
    fleet = hearsay.Fleet(survey(), 10, SECRET)
    ten = {"colour": ["red"] * 10, "hour": [1] * 10}
    fleet.report(3, ten)
    for period in (3, 2):
        with pytest.raises(ScenarioError, match="has reported in period"):
            fleet.report(period, ten)
    with pytest.raises(ScenarioError, match="not in the fleet"):
        fleet.report(4, ten, range(1, 11))
    with pytest.raises(ScenarioError, match="twice"):
        fleet.report(4, ten, [0] * 10)
    with pytest.raises(ScenarioError, match="no period -1"):
        fleet.report(-1, ten)


def test_a_value_that_the_survey_does_not_list_is_located_and_not_repeated() -> None:
    fleet = hearsay.Fleet(survey(), 2)
    with pytest.raises(ScenarioError, match="'colour': the value in row 1 is not one of the survey's") as refused:
        fleet.report(0, {"colour": ["red", "ill"], "hour": [1, 2]})
    assert "ill" not in str(refused.value)
    with pytest.raises(ScenarioError, match="row 0"):
        fleet.report(0, {"colour": np.array([None, "red"], dtype=object), "hour": [1, 2]})
    with pytest.raises(ScenarioError, match="2 values for 1 devices"):
        fleet.report(0, {"colour": ["red", "red"], "hour": [1, 2]}, [0])
    with pytest.raises(ScenarioError, match="no values of attribute 'hour'"):
        fleet.report(0, {"colour": ["red", "red"]})


def test_a_cap_needs_a_store() -> None:
    with pytest.raises(SurveyError, match="memo_cap"):
        hearsay.Fleet(survey("eps_inf: 4, eps_1: 2, memo_cap: 2"), 10)
