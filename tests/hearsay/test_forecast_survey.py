"""`hearsay forecast` on a collected survey: people, shares, groups, visitors of any kind and window, and the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hearsay.cli import app
from protocols.errors import ResultsError, ScenarioError, SurveyError

SURVEY = """{id: plans, start: 2026-01-05T00:00:00Z, period: 1d, eps_inf: 6, eps_1: 4, horizon: 7, clock: source,
             attributes: [{name: plan, values: [free, paid, trial], groups: {paying: [paid, trial]}}]}"""
PERIODS, DEVICES = 40, 300


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collected survey."""
    root = tmp_path_factory.mktemp("run")
    (root / "survey.yaml").write_text(SURVEY)
    size = ["--devices", str(DEVICES), "--periods", str(PERIODS)]
    words = ["run", str(root / "survey.yaml"), "--scenario", "telemetry", *size, "--data", str(root / "data")]
    assert CliRunner().invoke(app, words).exit_code == 0
    return root / "data"


def forecast(data: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["forecast", "--data", str(data), "--ahead", "2", "--json", *options])


def series(data: Path, *options: str) -> dict[str, dict[str, Any]]:
    found = forecast(data, *options)
    assert found.exit_code == 0, found.exception
    return {one["name"]: one for one in json.loads(found.stdout)["series"]}


def test_people_of_every_value_and_group_and_all_visitors_are_forecast(data: Path) -> None:
    found = series(data)
    assert list(found) == ["visitors", "plan=free", "plan=paid", "plan=trial", "plan=paying"]
    assert found["visitors"]["forecasts"][0]["time"] == "2026-02-14 00:00:00"
    assert found["visitors"]["forecasts"][0]["mean"] == pytest.approx(0.9 * DEVICES, rel=0.05)
    first = found["plan=free"]["forecasts"][0]
    assert first["truth_high_95"] > first["truth_low_95"]  # although the series hardly moves: memos do not average out
    assert list(series(data, "--attribute", "plan", "--value", "paying")) == ["plan=paying"]


def test_shares_add_up_to_one(data: Path) -> None:
    found = series(data, "--measure", "share")
    values = [found[f"plan={value}"]["forecasts"][1]["mean"] for value in ("free", "paid", "trial")]
    assert sum(values) == pytest.approx(1)


@pytest.mark.parametrize("options", [("--measure", "new"), ("--measure", "returning"), ("--window", "7")])
def test_new_and_returning_visitors_and_windows_are_forecast(data: Path, options: tuple[str, ...]) -> None:
    ((name, found),) = series(data, "--season", "0", *options).items()
    assert options[1] in name and found["values"] >= PERIODS - 7


def test_a_backtest_is_against_the_truth_if_the_scenario_is_named(data: Path) -> None:
    population = ("--scenario", "telemetry", "--devices", str(DEVICES))
    found = series(data, "--value", "free", "--backtest", "6", *population)["plan=free"]["backtest"][0]
    assert found["truth"]["count"] == found["publication"]["count"] == 6
    other = forecast(data, "--scenario", "telemetry", "--devices", "200")
    assert isinstance(other.exception, ScenarioError)


def test_pairs_of_a_cross_and_their_groups_are_forecast(tmp_path: Path) -> None:
    (tmp_path / "survey.yaml").write_text(
        """{id: pairs, start: 2026-01-05T00:00:00Z, period: 1d, eps: 6, clock: source, attributes: [
            {name: plan, values: [free, paid]}, {name: os, values: [a, b, c], groups: {open: [b, c]}}],
            crosses: [{of: [plan, os], share: 0.6}]}"""
    )
    words = [
        "run",
        str(tmp_path / "survey.yaml"),
        "--devices",
        "300",
        "--periods",
        "24",
        "--data",
        str(tmp_path / "data"),
    ]
    assert CliRunner().invoke(app, words).exit_code == 0
    found = series(tmp_path / "data", "--attribute", "plan*os", "--season", "0")
    pairs = [f"plan*os={plan}*{os}" for plan in ("free", "paid") for os in "abc"]
    assert [name for name in found if "=" in name] == [*pairs, "plan*os=free*open", "plan*os=paid*open"]
    whole = found["plan*os=free*open"]["forecasts"][0]["mean"]
    parts = [found[f"plan*os=free*{os}"]["forecasts"][0]["mean"] for os in "bc"]
    assert whole == pytest.approx(sum(parts), rel=0.35)
    for one in found.values():
        assert one["forecasts"][0]["truth_low_95"] < one["forecasts"][0]["mean"] < one["forecasts"][0]["truth_high_95"]


def test_what_cannot_be_forecast_is_said(data: Path) -> None:
    refused = forecast(data, "--value", "gold").exception
    assert isinstance(refused, SurveyError) and "its values: free, paid, paying, trial" in str(refused)
    assert isinstance(forecast(data, "--attribute", "colour").exception, SurveyError)
    assert isinstance(forecast(data, "--window", "8").exception, SurveyError)
    short = forecast(data, "--season", "30").exception
    assert isinstance(short, ResultsError) and "40 values are too little" in short.message
