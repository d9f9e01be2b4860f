"""Forecasts: fits and streaming updates of a thousand series, and accuracy on a real series beside other forecasters.

statsforecast and LightGBM are compared with if they are installed; nothing here installs them.
"""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np

from analytics.forecasting import Bank, Series, Structure, backtest
from analytics.forecasting.backtesting import LAST, OURS
from analytics.forecasting.fitting import fit
from bench.tables import Table, best_of

MONTREUIL = Path(__file__).parents[1] / "examples/series/montreuil.csv"
SERIES, POINTS, FITTED, HISTORY, WEEK = 1000, 3000, 12, 400, 336
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
    structure = Structure.of([48, 336])
    scored = [backtest(Series.exact("", region), structure, WEEK, (1, 48)) for region in truth.T]
    for method, step in ((LAST, 1), (OURS, 1), (OURS, 48)):
        chosen = [s.publication for region in scored for s in region if (s.method, s.step) == (method, step)]
        figures = [float(np.mean([getattr(s, name) for s in chosen])) for name in ("rmse", "mae", "coverage_95")]
        text = f"{figures[0]:.1f} / {figures[1]:.1f} / {figures[2]:.1%}"
        wanted = f"{WANTED_RMSE}" if (method, step) == (OURS, 1) else ""
        found.row(f"Montreuil, {method}, {step} ahead: RMSE / MAE / 95 % coverage", text, wanted)
        if wanted and figures[0] > WANTED_RMSE:
            found.missed.append(f"RMSE {figures[0]:.0f} instead of {WANTED_RMSE}")
    if find_spec("lightgbm"):
        found.row("Montreuil, LightGBM on lags, 1 ahead: RMSE", f"{_trees(truth):.1f}", "")
    if find_spec("statsforecast"):
        found.row("Montreuil, statsforecast MSTL, 48 ahead once: RMSE", f"{_mstl(truth):.1f}", "")
    absent = [name for name in ("lightgbm", "statsforecast") if not find_spec(name)]
    if absent:
        found.remarks.append(f"not installed, so not compared with: {', '.join(absent)}")


def _trees(truth: np.ndarray) -> float:
    from lightgbm import LGBMRegressor

    lags = (1, 2, 3, 47, 48, 49, 335, 336, 337)
    errors = []
    for region in truth.T:
        t = np.arange(max(lags), len(region))
        inputs = np.stack([*(region[t - lag] for lag in lags), t % 48, t % 336 // 48], axis=1)
        model = LGBMRegressor(n_estimators=300, learning_rate=0.05, verbose=-1)
        model.fit(inputs[:-WEEK], region[t][:-WEEK])
        errors.append(np.sqrt(np.mean((model.predict(inputs[-WEEK:]) - region[t][-WEEK:]) ** 2)))
    return float(np.mean(errors))


def _mstl(truth: np.ndarray) -> float:
    from statsforecast.models import MSTL

    errors = []
    for region in truth.T:
        ahead = MSTL(season_length=[48, 336]).forecast(region[:-WEEK], h=48)["mean"]
        errors.append(np.sqrt(np.mean((ahead - region[-WEEK : len(region) - WEEK + 48]) ** 2)))
    return float(np.mean(errors))
