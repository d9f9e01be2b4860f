"""Backtests: the last periods forecast from the ones before, beside simple rules.

The parameters are fitted to what lies before the test; the filter then takes in one period after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.forecasting.fitting import fit
from analytics.forecasting.predicting import calibration, from_all_origins
from analytics.forecasting.scores import Scores, score
from analytics.forecasting.series import Series
from analytics.forecasting.structure import Structure
from protocols.arrays import Floats

OURS, SEASONAL, MEAN, LAST = "hearsay", "seasonal naive", "seasonal mean", "last value"


@dataclass(frozen=True)
class Scored:
    """The scores of one way to forecast, so many steps ahead."""

    method: str
    step: int
    publication: Scores | None
    truth: Scores | None

    def record(self) -> dict[str, Any]:
        shown = {name: found.record() for name in ("publication", "truth") if (found := getattr(self, name))}
        return {"method": self.method, "step": self.step, **shown}


def backtest(
    series: Series, structure: Structure, periods: int, steps: tuple[int, ...] = (1,), truth: Floats | None = None
) -> list[Scored]:
    """Scores of forecasts of the last `periods`, for each number of steps ahead; against the truth if it is known.

    Simple rules have intervals, too: as wide as their errors within the training part.
    """
    first = len(series) - periods
    training = series[:first]
    fitted = fit(training.values, training.fresh, structure, training.first)
    stretch, _ = calibration(training, fitted)
    mean, variance = from_all_origins(series, fitted, first, max(steps))
    scale = _error_of_repeating(training.values, structure.main)
    fresh, memo = np.nan_to_num(series.fresh[first:]), np.nan_to_num(series.memo[first:])
    found = []
    for step in steps:
        rows = np.arange(periods - step + 1)
        target = rows + step - 1
        outcome = series.values[first:][target]
        known = None if truth is None else truth[first:][target]
        model = variance[rows, step - 1] * stretch**2
        distributions = {OURS: (mean[rows, step - 1], np.sqrt(model + fresh[target]), np.sqrt(model + memo[target]))}
        for name, points in simple_rules(series.values, structure.main, step).items():
            spread = np.full(len(rows), _deviation(training.values - points[:first]))
            distributions[name] = points[first + target], spread, spread
        for name, (point, published, true) in distributions.items():
            against_truth = None if known is None else score(known, point, true, scale)
            found.append(Scored(name, step, score(outcome, point, published, scale), against_truth))
    return found


def simple_rules(values: Floats, season: int, step: int) -> dict[str, Floats]:
    """What simple rules say about each period, `step` periods before it.

    Repeat the last season; the mean of all earlier periods of the same phase; repeat the last value.
    """
    back = -(-step // season) * season
    rules = {SEASONAL: _shifted(values, back)} if season > 1 else {}
    means = np.full(len(values), np.nan)
    for phase in range(season):
        column = values[phase::season]
        known = np.isfinite(column)
        count, total = np.cumsum(known), np.cumsum(np.where(known, column, 0.0))
        means[phase::season] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    rules[MEAN] = _shifted(means, back)
    rules[LAST] = _shifted(values, step)
    return rules


def _shifted(values: Floats, by: int) -> Floats:
    """Values of `by` periods ago, or of the newest period before that has one."""
    filled = values.copy()
    for t in range(1, len(filled)):
        if np.isnan(filled[t]):
            filled[t] = filled[t - 1]
    return np.concatenate([np.full(min(by, len(values)), np.nan), filled[: max(0, len(values) - by)]])


def _error_of_repeating(values: Floats, season: int) -> float | None:
    errors = np.abs(values[season:] - values[:-season]) if len(values) > season else np.empty(0)
    errors = errors[np.isfinite(errors)]
    return float(errors.mean()) if len(errors) and errors.mean() > 0 else None


def _deviation(errors: Floats) -> float:
    known = errors[np.isfinite(errors)]
    return float(np.sqrt((known**2).mean())) if len(known) else np.nan
