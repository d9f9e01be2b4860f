"""`hearsay forecast` on tables: tables, JSON, CSV, a page, and sentences where nothing can be said."""

from __future__ import annotations

import csv
import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hearsay.cli import app
from protocols.errors import ResultsError
from tests.helpers.browser import events_in


def hearsay(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """Nine weeks of days, with noise of variance 16 in what is seen, and one day that is out of line."""
    random, n = np.random.default_rng(3), 63
    truth = 100 + 30 * np.cos(2 * np.pi * np.arange(n) / 7)
    truth[-1] += 200
    seen = truth + random.normal(0, 4, n)
    path = tmp_path / "days.csv"
    rows = [f"{datetime(2026, 1, 1) + timedelta(days=t):%Y-%m-%d},{seen[t]:.3f},16,25,{truth[t]:.3f}" for t in range(n)]
    path.write_text("date,visits,noise,memo,truth\n" + "\n".join(rows) + "\n")
    return path


def noisy(path: Path, *more: str) -> tuple[str, ...]:
    given = ("--series", str(path), "--variance", "noise", "--memo-variance", "memo", "--truth", "truth")
    return ("forecast", *given, "--ahead", "7", *more)


def test_json_has_both_kinds_of_intervals_and_the_backtest(days: Path) -> None:
    found = json.loads(hearsay(*noisy(days, "--backtest", "14", "--json")).stdout)
    (series,) = found["series"]
    assert (series["name"], series["values"], series["seasons"]) == ("visits", 63, [7])
    first = series["forecasts"][0]
    assert first["time"] == "2026-03-05 00:00:00"
    assert len(series["forecasts"]) == 7
    widths = {kind: first[f"{kind}_high_95"] - first[f"{kind}_low_95"] for kind in ("truth", "publication")}
    model = (widths["publication"] / 3.92) ** 2 - 16
    assert (widths["truth"] / 3.92) ** 2 - 25 == pytest.approx(model, rel=0.01)
    methods = [(scored["method"], scored["step"]) for scored in series["backtest"]]
    assert methods[:4] == [("hearsay", 1), ("seasonal naive", 1), ("seasonal mean", 1), ("last value", 1)]
    assert {"mae", "rmse", "mase", "crps", "coverage_80", "coverage_95", "pit"} <= set(series["backtest"][0]["truth"])
    assert series["unexpected"] == ["2026-03-04 00:00:00"]


def test_tables_say_what_left_its_interval_and_files_are_written(days: Path, tmp_path: Path) -> None:
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    shown = hearsay(*noisy(days, "--html", str(page), "--csv", str(table))).stdout
    assert "1 publications left their 99 % interval, the last: Wed 2026-03-04" in shown
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7 and rows[0]["series"] == "visits"
    (told,) = events_in(page.read_text())
    (series,) = told["record"]["series"]
    assert [series["begins"][place] for place in series["unexpected"]] == ["2026-03-04T00:00:00"]
    assert [row["mean"] for row in series["ahead"]] == [float(row["mean"]) for row in rows]


def test_too_little_data_is_said(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("n\n" + "\n".join(map(str, range(12))) + "\n")
    refused = hearsay("forecast", "--series", str(path)).exception
    assert isinstance(refused, ResultsError)
    assert refused.message == "n: 12 values are too little to say anything; a forecast needs 20"


def test_options_that_do_not_go_together_are_refused(days: Path) -> None:
    assert hearsay("forecast", "--series", str(days), "some-survey").exit_code == 2
    assert hearsay("forecast", "--variance", "v").exit_code == 2
