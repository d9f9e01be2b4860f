"""`hearsay forecast` on tables as people have them and on collected surveys: JSON, CSV, a page, and sentences."""

import csv
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

from hearsay.forecasts.series_files import Loaded, read_series
from protocols.errors import HearsayError, ResultsError, SurveyError
from tests.helpers.browser import events_in
from tests.lab.calling import call as hearsay


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
    rules = ["hearsay", "seasonal naive", "mean of the last four", "seasonal mean", "last value"]
    assert methods[:5] == [(rule, 1) for rule in rules]
    assert {"mae", "rmse", "mase", "crps", "coverage_80", "coverage_95", "pit"} <= set(series["backtest"][0]["truth"])
    assert series["unexpected"] == ["2026-03-04 00:00:00"]


def test_tables_say_what_left_its_interval_and_files_are_written(days: Path, tmp_path: Path) -> None:
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    shown = " ".join(hearsay(*noisy(days, "--html", str(page), "--csv", str(table))).stdout.split())
    assert "1 publication left the 99 % interval (0.1 usually do); the last: Wed 2026-03-04" in shown
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7 and rows[0]["series"] == "visits"
    (told,) = events_in(page.read_text())
    (series,) = told["record"]["series"]
    assert [series["begins"][place] for place in series["unexpected"]] == ["2026-03-04T00:00:00"]
    assert [row["mean"] for row in series["ahead"]] == [float(row["mean"]) for row in rows]


def test_too_little_data_and_too_many_options_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("n\n" + "\n".join(map(str, range(12))) + "\n")
    refused = hearsay("forecast", "--series", str(path)).exception
    assert isinstance(refused, ResultsError)
    assert refused.message == "n: 12 values are too little to say anything; a forecast needs 20"
    assert hearsay("forecast", "--series", str(path), "some-survey").exit_code == 2, "these do not go together"
    assert hearsay("forecast", "--variance", "v").exit_code == 2


SURVEY = """{id: plans, start: 2026-01-05T00:00:00Z, period: 1d, eps_inf: 6, eps_1: 4, horizon: 7, clock: source,
             attributes: [{name: plan, values: [free, paid, trial], groups: {paying: [paid, trial]}}]}"""
PERIODS, DEVICES = 40, 300


def collected(root: Path, survey: str, devices: int, periods: int, *more: str) -> Path:
    """The directory of a survey that so many devices have answered."""
    (root / "survey.yaml").write_text(survey)
    size = ["--devices", str(devices), "--periods", str(periods)]
    assert hearsay("run", str(root / "survey.yaml"), *size, "--data", str(root / "data"), *more).exit_code == 0
    return root / "data"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return collected(tmp_path_factory.mktemp("run"), SURVEY, DEVICES, PERIODS, "--scenario", "telemetry")


def forecast(data: Path, *options: str) -> Result:
    return hearsay("forecast", "--data", str(data), "--ahead", "2", "--json", *options)


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
    shares = series(data, "--measure", "share")
    parts = [shares[f"plan={value}"]["forecasts"][1]["mean"] for value in ("free", "paid", "trial")]
    assert sum(parts) == pytest.approx(1)


@pytest.mark.parametrize("options", [("--measure", "new"), ("--measure", "returning"), ("--window", "7")])
def test_new_and_returning_visitors_and_windows_are_forecast(data: Path, options: tuple[str, ...]) -> None:
    ((name, found),) = series(data, "--season", "0", *options).items()
    assert options[1] in name and found["values"] >= PERIODS - 7


def test_days_of_the_calendar_are_forecast_from_the_first_whole_one_on(tmp_path: Path) -> None:
    survey = """{id: counted, start: 2026-01-01T00:00:00Z, period: 12h, clock: source, eps: 2,
        visitors: {units: [day, week, ever]}, attributes: [{name: version, values: [old, new]}]}"""
    data = collected(tmp_path, survey, 100, 44, "--scenario", "telemetry")
    found = series(data, "--unit", "day")["visitors by day"]
    assert found["values"] == 21 and found["forecasts"][0]["time"] == "2026-01-23 00:00:00"
    assert isinstance(forecast(data, "--unit", "month").exception, ResultsError)


def test_a_backtest_of_a_simulated_run_is_against_the_truth_too(data: Path) -> None:
    for measure, scale in (("people", 1), ("share", DEVICES)):
        found = series(data, "--measure", measure, "--value", "paying", "--backtest", "6")["plan=paying"]["backtest"][0]
        assert found["truth"]["count"] == found["publication"]["count"] == 6
        # Forecasts are mostly nearer to the truth than to noisy results; in six periods chance may say otherwise.
        assert 0 < found["truth"]["mae"] < 2 * found["publication"]["mae"] < 2 * DEVICES / scale
        assert found["truth"]["mae"] != found["publication"]["mae"]


def test_pairs_of_a_cross_and_their_groups_are_forecast(tmp_path: Path) -> None:
    survey = """{id: pairs, start: 2026-01-05T00:00:00Z, period: 1d, eps: 6, clock: source, attributes: [
            {name: plan, values: [free, paid]}, {name: os, values: [a, b, c], groups: {open: [b, c]}}],
            crosses: [{of: [plan, os], share: 0.6}]}"""
    found = series(collected(tmp_path, survey, 300, 24), "--attribute", "plan*os", "--season", "0")
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


def read(tmp_path: Path, text: str, **options: str) -> Loaded:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return read_series(path, **options)  # type: ignore[arg-type]


TIMES = {
    "ISO": ["2020-03-01 00:00:00", "2020-03-01 01:00:00", "2020-03-01 02:00:00"],
    "with T and zone": ["2020-03-01T00:00:00Z", "2020-03-01T01:00:00+00:00", "2020-03-01T02:00:00.000+0000"],
    "day first": ["01/03/2020 00:00", "01/03/2020 01:00", "01/03/2020 02:00"],
    "German": ["01.03.2020 00:00", "01.03.2020 01:00", "01.03.2020 02:00"],
    "twelve hours": ["2020-03-01 12:00 AM", "2020-03-01 01:00 AM", "2020-03-01 02:00 AM"],
    "Unix": ["1583020800", "1583024400", "1583028000"],
    "milliseconds": ["1583020800000", "1583024400000", "1583028000000"],
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_times_are_found_whatever_their_column_is_called_and_however_they_are_written(
    tmp_path: Path, times: list[str]
) -> None:
    loaded = read(tmp_path, "quand,people\n" + "".join(f"{time},{place}\n" for place, time in enumerate(times)))
    assert (loaded.axis.begin, loaded.axis.step) == (datetime(2020, 3, 1), timedelta(hours=1))
    assert [series.name for series in loaded.series] == ["people"]


@pytest.mark.parametrize("hours", [["00:00:00", "00:30:00"], ["0", "1"], ["00:00", "00:30"]])
def test_dates_and_times_of_day_may_stand_in_two_columns(tmp_path: Path, hours: list[str]) -> None:
    rows = "".join(f"2020-08-2{day},{hour},{day}\n" for day in range(4, 7) for hour in hours)
    loaded = read(tmp_path, f"Date,Hour,n\n{rows}")
    assert [series.name for series in loaded.series] == ["n"]
    assert len(set(map(loaded.axis.at, range(len(loaded.series[0]))))) == len(loaded.series[0])


def test_of_two_ways_to_read_a_date_the_one_with_even_steps_is_taken(tmp_path: Path) -> None:
    days = "".join(f"{month}/{day}/2020,1\n" for month in (1, 2) for day in range(1, 13))
    loaded = read(tmp_path, f"day,n\n{days}")
    assert loaded.axis.step == timedelta(days=1)
    assert len(loaded.series[0]) == 31 + 12


def test_months_are_calendar_months(tmp_path: Path) -> None:
    months = "".join(f"{year}-{month:02d}-01,{month}\n" for year in (2019, 2020, 2021) for month in range(1, 13))
    loaded = read(tmp_path, f"month,n\n{months}")
    assert len(loaded.series[0]) == loaded.series[0].known == 36
    assert loaded.axis.at(36) == datetime(2022, 1, 1)


def test_missing_rows_and_cells_are_missing_periods_and_order_does_not_matter(tmp_path: Path) -> None:
    loaded = read(tmp_path, "time,n\n2020-01-05,5\n2020-01-01,-1\n2020-01-02,NA\n2020-01-04,0\n")
    np.testing.assert_equal(loaded.series[0].values, [-1, np.nan, np.nan, 0, 5])
    assert loaded.remarks == ["1 of 5 periods have no row"]


def test_the_hour_that_a_clock_skips_is_missing_and_the_one_it_repeats_is_one_period(tmp_path: Path) -> None:
    hours = [datetime(2021, 3, 27) + timedelta(hours=hour) for hour in range(24 * 220)]
    skipped, repeated = datetime(2021, 3, 28, 2), datetime(2021, 10, 31, 2)
    rows = [f"{hour.isoformat()},{hour.hour}" for hour in hours if hour != skipped]
    rows.insert(rows.index(f"{repeated.isoformat()},2"), f"{repeated.isoformat()},4")
    loaded = read(tmp_path, "local_time,n\n" + "\n".join(rows))
    values = loaded.series[0].values
    assert np.isnan(values[hours.index(skipped)]) and values[hours.index(repeated)] == 3
    assert len(values) == len(hours)
    assert loaded.remarks[1] == "1 rows repeat the time of another: their mean is used"


def test_rows_without_times_are_numbered(tmp_path: Path) -> None:
    loaded = read(tmp_path, "a;b\n1,5;2\n2,5;3\n")
    assert loaded.axis.begin is None and loaded.axis.at(2) == 2
    assert loaded.series[0].values.tolist() == [1.5, 2.5]


def test_columns_of_variances_and_of_the_truth_are_no_series(tmp_path: Path) -> None:
    text = "day,n,v,b,t\n2020-01-01,5,1,9,4\n2020-01-02,6,,9,5\n2020-01-03,7,3,9,6\n"
    loaded = read(tmp_path, text, variance="v", memo_variance="b", truth="t")
    (series,) = loaded.series
    np.testing.assert_equal(series.values, [5, np.nan, 7])  # a value of unknown noise is no value
    assert series.fresh.tolist() == [1, 0, 3] and series.memo.tolist() == [9, 9, 9]
    assert loaded.truth["n"].tolist() == [4, 5, 6]
    assert read(tmp_path, text, variance="2.5").series[0].fresh.tolist() == [2.5] * 3


WRONG = {
    "no rows": ("day,n\n", {}),
    "row 2 has 3 columns, not 2": ("day,n\n2020-01-01,1,2\n", {}),
    "no column 'm'": ("day,n\n2020-01-01,1\n2020-01-02,2\n", {"variance": "m"}),
    "has no column of numbers": ("day,n\n2020-01-01,red\n2020-01-02,blue\n", {}),
    "rows have the time of another": ("day,area,n\n" + "2020-01-01,x,1\n2020-01-02,y,2\n2020-01-03,y,2\n" * 2, {}),
    "not evenly spaced": ("day,n\n" + "".join(f"2020-01-01 0{h}:{h * h:02d}:{h},1\n" for h in range(8)), {}),
    "a variance below 0": ("day,n,v\n2020-01-01,1,-1\n2020-01-02,2,1\n", {"variance": "v"}),
    "cells that are not times": ("day,n\n2020-01-01,1\n2020-01-02,2\n", {"time": "n"}),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_with_a_table_is_said(tmp_path: Path, message: str) -> None:
    text, options = WRONG[message]
    with pytest.raises(HearsayError, match=message):
        read(tmp_path, text, **options)
