"""Forecasts: fits and streaming updates of a thousand series, and accuracy on a real series beside other forecasters.

statsforecast is compared with if it is installed; it needs an older pandas than the tests do.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np

from analytics.forecasting import Bank, Series, Structure, backtest, forecast
from analytics.forecasting.backtesting import LAST, OURS
from analytics.forecasting.fitting import fit
from analytics.forecasting.structure import Floats
from bench._tables import Table, best_of

MONTREUIL = Path(__file__).parents[1] / "examples/series/montreuil.csv"
SERIES, POINTS, FITTED, HISTORY, DAY, WEEK = 1000, 3000, 12, 400, 48, 336
WANTED_FIT_MINUTES, WANTED_UPDATE_MS, WANTED_RMSE = 15, 50, 1260


def run() -> Table:
    found = Table(f"Forecasts: {SERIES:,} series", ("", "figure", "wanted"))
    _speed(found)
    _accuracy(found)
    return found


def _speed(found: Table) -> None:
    structure, random = Structure.of([24, 168]), np.random.default_rng(1)
    hours = np.arange(POINTS)
    week = 100 + 30 * np.sin(2 * np.pi * hours / 24) + 10 * np.sin(2 * np.pi * hours / 168)
    series = [week + random.normal(0, 8, POINTS) for _ in range(FITTED)]
    fresh = random.uniform(10, 40, POINTS)
    fit(series[0], fresh, structure)  # compile
    start = process_time()
    for values in series:
        fit(values, fresh, structure)
    minutes = (process_time() - start) / FITTED * SERIES / 60
    found.row(f"fitting {SERIES:,} series of {POINTS:,} hours, from {FITTED}", f"{minutes:.1f} min", "minutes")
    if minutes > WANTED_FIT_MINUTES:
        found.missed.append(f"fits take {minutes:.1f} minutes, not {WANTED_FIT_MINUTES}")
    short = [
        Series("", np.resize(series[i % FITTED], HISTORY), fresh[:HISTORY], fresh[:HISTORY]) for i in range(SERIES)
    ]
    bank = Bank(structure, short)
    values, noise = np.resize(week, SERIES), np.full(SERIES, 20.0)
    update = 1e3 * best_of(5, lambda: bank.update(values, noise, noise), process_time)
    ahead = 1e3 * best_of(5, lambda: bank.forecast(24), process_time)
    found.row(f"one update of {len(values):,} series", f"{update:.1f} ms", f"{WANTED_UPDATE_MS} ms")
    found.row(f"their next 24 periods, {structure.size} states each", f"{ahead:.1f} ms", "")
    if update > WANTED_UPDATE_MS:
        found.missed.append(f"an update takes {update:.0f} ms, not {WANTED_UPDATE_MS}")


def _accuracy(found: Table) -> None:
    with MONTREUIL.open() as file:
        truth = np.array([row[2:8] for row in list(csv.reader(file))[1:]], dtype=np.float64)
    structure = Structure.of([DAY, WEEK])
    scored = [backtest(Series.exact("", region), structure, WEEK, (1, 48)) for region in truth.T]
    for method, step in ((LAST, 1), (OURS, 1), (OURS, 48)):
        chosen = [s.publication for region in scored for s in region if (s.method, s.step) == (method, step)]
        figures = [float(np.mean([getattr(s, name) for s in chosen])) for name in ("rmse", "mae", "coverage_95")]
        text = f"{figures[0]:.1f} / {figures[1]:.1f} / {figures[2]:.1%}"
        wanted = f"{WANTED_RMSE}" if (method, step) == (OURS, 1) else ""
        found.row(f"Montreuil, {method}, {step} ahead: RMSE / MAE / 95 % coverage", text, wanted)
        if wanted and figures[0] > WANTED_RMSE:
            found.missed.append(f"RMSE {figures[0]:.0f} instead of {WANTED_RMSE}")
    found.row("Montreuil, LightGBM on lags, 1 ahead: RMSE", f"{_trees(truth):.1f}", "")
    found.row("Montreuil, hearsay, one day from one origin: RMSE", f"{_one_day(truth, _filtered):.1f}", "")
    if find_spec("statsforecast"):
        found.row("Montreuil, statsforecast MSTL, the same day: RMSE", f"{_one_day(truth, _mstl):.1f}", "")
    else:
        found.remarks.append("not installed, so not compared with: statsforecast")


def _trees(truth: Floats) -> float:
    from lightgbm import Dataset, train

    lags = (1, 2, 3, 47, 48, 49, 335, 336, 337)
    errors = []
    for region in truth.T:
        t = np.arange(max(lags), len(region))
        inputs = np.stack([*(region[t - lag] for lag in lags), t % 48, t % 336 // 48], axis=1)
        settings = {"objective": "regression", "learning_rate": 0.05, "num_threads": 1, "verbosity": -1}
        model = train(settings, Dataset(inputs[:-WEEK], region[t][:-WEEK]), num_boost_round=300)
        errors.append(np.sqrt(np.mean((model.predict(inputs[-WEEK:]) - region[t][-WEEK:]) ** 2)))
    return float(np.mean(errors))


def _one_day(truth: Floats, forecaster: Callable[[Floats], Floats]) -> float:
    """Of the first day of the test week, forecast from the weeks before."""
    days = [(forecaster(region[:-WEEK]), region[-WEEK : DAY - WEEK]) for region in truth.T]
    return float(np.mean([np.sqrt(np.mean((made - day) ** 2)) for made, day in days]))


def _filtered(region: Floats) -> Floats:
    return forecast(Series.exact("", region), Structure.of([DAY, WEEK]), DAY).mean


def _mstl(region: Floats) -> Floats:
    from statsforecast.models import MSTL

    return np.asarray(MSTL(season_length=[DAY, WEEK]).forecast(region, h=DAY)["mean"])
