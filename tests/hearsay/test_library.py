"""What people get who write `import hearsay`: names, surveys, plans, fleets, devices, estimates, runs and results."""

from __future__ import annotations

import json
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hearsay
from analytics.estimation import estimate
from hearsay.library.estimating import FIGURES
from protocols.errors import ResultsError, ScenarioError, SurveyError, WireError
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, encode_clock
from tests.docs.pages import ROOT
from views.local import collector
from views.reading import Results
from views.results import histogram_table

NAMES = {
    "Device", "Fleet", "HearsayError", "Limits", "Survey", "estimate", "estimate_counts", "evaluate", "load_survey",
    "plan", "read_results", "run", "synthesize",
}  # fmt: skip
HEAVY = {"numpy", "pydantic", "kafka", "pyarrow", "redis", "faust", "typer", "rich"}
SECRET = bytes(range(32))
KEY = bytes(32)
ANY = hearsay.Limits(report=1000, value=1000, year=10_000)
COLOURS = ["red"] * 6_000 + ["blue"] * 3_000 + ["green"] * 1_000
HOURS = list(range(24)) * 417
OF_CROSSES = ["row", "column", "adjusted", "adjusted_error", "adjusted_low", "adjusted_high"]


def test_these_are_the_names_and_each_is_explained() -> None:
    assert set(hearsay.__all__) == set(dir(hearsay)) == NAMES
    for name in NAMES:
        found = getattr(hearsay, name)
        assert found.__doc__ and "BaseModel" not in found.__doc__, name
        assert name in (ROOT / "docs" / "library.md").read_text(), name
    assert "return" in typing.get_type_hints(hearsay.estimate)


def test_importing_it_imports_nothing_heavy() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", "import hearsay, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    ).stdout.split()
    assert "hearsay" in listed
    assert not {name.partition(".")[0] for name in listed} & (HEAVY | {"protocols", "analytics"})


def test_a_type_checker_knows_every_name(tmp_path: Path) -> None:
    """With the settings of the project, whose check of the whole project has left most of the answer in the cache."""
    program = tmp_path / "program.py"
    program.write_text("import hearsay\n" + "".join(f"reveal_type(hearsay.{n})\n" for n in NAMES) + "hearsay.estimates")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", str(program)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    ).stdout.splitlines()  # fmt: skip
    revealed = [line.partition("Revealed type is ")[2] for line in checked if "Revealed type" in line]
    assert len(revealed) == len(NAMES) and not any(kind == '"Any"' for kind in revealed)
    (error,) = [line.partition(": error: ")[2] for line in checked if ": error: " in line]
    assert error == 'Module has no attribute "estimates"; maybe "estimate"?  [attr-defined]'


def test_a_survey_is_read_from_a_file_or_from_text(tmp_path: Path) -> None:
    text = "id: s\nstart: 2026-01-01T00:00:00Z\nperiod: 1d\neps: 1\nattributes: [{name: a, values: [x, y]}]\n"
    (tmp_path / "survey.yaml").write_text(text)
    from_text, from_path = hearsay.load_survey(text), hearsay.load_survey(tmp_path / "survey.yaml")
    assert from_text == from_path == hearsay.load_survey(str(tmp_path / "survey.yaml"))
    with pytest.raises(SurveyError, match=r"nowhere\.yaml cannot be read"):
        hearsay.load_survey("nowhere.yaml")


def test_a_plan_is_what_the_command_shows() -> None:
    drawn = hearsay.plan(survey(), devices=500, error=0.02)
    assert (drawn.survey, drawn.devices, drawn.error) == ("buttons", 500, 0.02)


def survey(terms: str = "eps_inf: 4, eps_1: 2", more: str = "") -> hearsay.Survey:
    return hearsay.load_survey(f"""
        {{id: buttons, start: 2026-01-01T00:00:00Z, period: 1d, horizon: 3, clock: source, {terms}, attributes: [
            {{name: colour, values: [red, green, blue]{more}}}, {{name: hour, range: {{last: 23}}{more}}}]}}""")


def truth() -> dict[str, list[typing.Any]]:
    return {"colour": COLOURS, "hour": HOURS[: len(COLOURS)]}


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
    with pytest.raises(ScenarioError, match="2 values for 1 device"):
        fleet.report(0, {"colour": ["red", "red"], "hour": [1, 2]}, [0])
    with pytest.raises(ScenarioError, match="no values of attribute 'hour'"):
        fleet.report(0, {"colour": ["red", "red"]})


def test_a_cap_needs_a_store() -> None:
    with pytest.raises(SurveyError, match="memo_cap"):
        hearsay.Fleet(survey("eps_inf: 4, eps_1: 2, memo_cap: 2"), 10)


def test_a_run_gives_what_can_be_read_afterwards_and_the_truth(tmp_path: Path) -> None:
    ran = hearsay.run(survey(), devices=300, periods=2, data=tmp_path)
    read = hearsay.read_results(tmp_path)
    assert read["histograms"] == ran["histograms"]
    published = [
        "suppressed",
        "kind",
        "row",
        "column",
        "adjusted",
        *(f"adjusted_{part}" for part in ("error", "low", "high")),
    ]
    estimated = hearsay.estimate(survey(), []).column_names
    assert [name for name in read["histograms"].column_names if name not in published] == estimated
    assert ran["visitors"]["truth"].to_pylist() == [round(n) for n in read["visitors"]["visitors"].to_pylist()]
    assert read["visitors"]["truth"] == ran["visitors"]["truth"], "it is kept with the results"
    with pytest.raises(SurveyError, match="no survey 'other'"):
        hearsay.read_results(tmp_path, survey="other")


def test_a_run_without_a_directory_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert len(hearsay.run(survey(), devices=50, periods=1)["visitors"]) == 1
    assert list(tmp_path.iterdir()) == []


def test_results_are_read_from_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResultsError, match="there are no results in hearsay-data"):
        hearsay.read_results()
    with pytest.raises(ResultsError, match="contains no results"):
        hearsay.read_results(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_methods_are_compared_on_ones_own_data() -> None:
    table = hearsay.evaluate(
        {"colour": COLOURS, "hour": HOURS[:10_000]}, eps=[1], methods=["smp[l-grr]", "smp[l-oue]"], alpha=0.9, runs=5
    )
    scores = {row["correction"]: row for row in table.to_pylist()}
    assert list(scores) == ["raw", "norm-sub", "clip", None]
    assert 0.5 < scores["raw"]["mse"] / scores["raw"]["expected_mse"] < 2
    assert scores["raw"]["reveals"] == pytest.approx(0.9)
    assert scores[None]["method"] == "smp[l-oue]" and "eps_1" in scores[None]["infeasible"]
    with pytest.raises(ScenarioError, match="'hour' has 1 different"):
        hearsay.evaluate({"hour": [3, 3]})
    with pytest.raises(ScenarioError, match="one value per person"):
        hearsay.evaluate({"colour": ["a", "b"], "hour": [3]})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda survey: hearsay.estimate(None, b""),
        lambda survey: hearsay.estimate(survey, None),
        lambda survey: hearsay.estimate(survey, [None]),
        lambda survey: hearsay.estimate(survey, "text"),
        lambda survey: hearsay.estimate(survey, [], confidence=95),
        lambda survey: hearsay.estimate_counts(None, {"a": [1, 2]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, None, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": None}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [1, None]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [1.5, 1]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [-1, 1]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [1, 2]}, {"a": None}),
        lambda survey: estimate(None, 10, Scheme(survey).questions[0].channel),
        lambda survey: estimate([1, 2], None, Scheme(survey).questions[0].channel),
    ],
)
def test_what_is_no_count_and_no_report_is_refused_with_a_sentence(wrong: Callable[[hearsay.Survey], object]) -> None:
    survey = hearsay.load_survey(
        "{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: [{name: a, values: [x, y]}]}"
    )
    with pytest.raises(hearsay.HearsayError) as refused:
        wrong(survey)
    assert refused.value.hint
