"""Backtests: the last periods forecast from the ones before, beside simple rules.

The parameters are fitted to what lies before the test; the filter then takes in one period after the other. Forecasts
are scored against what came, as points, as intervals, and as whole distributions: they are normal.
"""

from dataclasses import asdict, dataclass
from math import pi, sqrt
from typing import Any

import numpy as np

from analytics.estimation.estimates import quantile
from analytics.forecasting.fitting import fit
from analytics.forecasting.predicting import calibration, from_all_origins
from analytics.forecasting.structure import Series, Structure, mean_of_known
from protocols.arrays import Floats

BINS = 10


@dataclass(frozen=True)
class Scores:
    """How good forecasts were. Smaller is better, but for coverage, which should be what it is named."""

    count: int
    mae: float
    rmse: float
    mase: float | None
    """MAE over that of repeating the last season within the training part; null without such a part."""
    crps: float
    coverage_80: float
    coverage_95: float
    width_95: float
    interval_score_95: float
    pit: tuple[int, ...]
    """How many outcomes fell into each tenth of their forecast distribution: even, if forecasts are right."""


def score(outcome: Floats, mean: Floats, deviation: Floats, scale: float | None = None) -> Scores | None:
    """Scores over all outcomes that are known (not NaN); None if there is none. `scale` is MASE's denominator.

    >>> right = score(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]), np.ones(3), scale=2.0)
    >>> round(right.mae, 3), round(right.rmse, 3), round(right.mase, 3), right.coverage_95
    (0.333, 0.577, 0.167, 1.0)
    """
    from scipy.special import ndtr  # takes a while to import

    known = np.isfinite(outcome) & np.isfinite(mean)
    if not known.any():
        return None
    y, m, sd = outcome[known], mean[known], np.maximum(deviation[known], 1e-300)
    error, half = np.abs(y - m), quantile(0.95) * sd
    mae, place = float(error.mean()), ndtr((y - m) / sd)
    return Scores(
        count=len(y),
        mae=mae,
        rmse=float(sqrt((error**2).mean())),
        mase=mae / scale if scale is not None and scale > 0 else None,
        crps=float(crps(y, m, sd).mean()),
        coverage_80=float((error <= quantile(0.8) * sd).mean()),
        coverage_95=float((error <= half).mean()),
        width_95=float((2 * half).mean()),
        # The width of the interval, and 2 / alpha times how far the outcome lies outside.
        interval_score_95=float((2 * half + 2 / (1 - 0.95) * np.maximum(error - half, 0)).mean()),
        pit=tuple(np.histogram(place, BINS, (0, 1))[0].tolist()),
    )


def crps(y: Floats, mean: Floats, deviation: Floats) -> Floats:
    """The continuous ranked probability score of a normal forecast (Gneiting and Raftery, 2007).

    >>> crps(np.array([0.0]), np.array([0.0]), np.array([1.0])).round(4).tolist()
    [0.2337]
    """
    from scipy.special import ndtr

    z = (y - mean) / deviation
    density = np.exp(-(z**2) / 2) / sqrt(2 * pi)
    return np.asarray(deviation * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / sqrt(pi)))


OURS, SEASONAL, MEAN, LAST = "hearsay", "seasonal naive", "seasonal mean", "last value"
LONGEST, LAST_FOUR = "longest season naive", "mean of the last four"


@dataclass(frozen=True)
class Scored:
    """The scores of one way to forecast, so many steps ahead."""

    method: str
    step: int
    publication: Scores | None
    truth: Scores | None

    def record(self) -> dict[str, Any]:
        shown = {name: asdict(found) for name in ("publication", "truth") if (found := getattr(self, name))}
        return {"method": self.method, "step": self.step, **shown}


def backtest(
    series: Series, structure: Structure, periods: int, steps: tuple[int, ...] = (1,), truth: Floats | None = None
) -> list[Scored]:
    """Scores of forecasts of the last `periods`, for each number of steps ahead; against the truth if it is known.

    Simple rules have intervals, too: as wide as their errors within the training part.
    """
    first = len(series) - periods
    training = series.before(first)
    fitted = fit(training, structure)
    stretch, _ = calibration(training, fitted)
    mean, variance = from_all_origins(series, fitted, first, max(steps))
    repeated = np.abs(training.values[structure.main :] - training.values[: -structure.main])
    scale = float(mean_of_known(repeated, axis=0))
    fresh, memo = np.nan_to_num(series.fresh[first:]), np.nan_to_num(series.memo[first:])
    found = []
    for step in steps:
        rows = np.arange(periods - step + 1)
        target = rows + step - 1
        outcome = series.values[first:][target]
        known = None if truth is None else truth[first:][target]
        model = variance[rows, step - 1] * stretch**2
        distributions = {OURS: (mean[rows, step - 1], np.sqrt(model + fresh[target]), np.sqrt(model + memo[target]))}
        for name, points in simple_rules(series.values, structure, step).items():
            spread = np.full(len(rows), np.sqrt(mean_of_known((training.values - points[:first]) ** 2, axis=0)))
            distributions[name] = points[first + target], spread, spread
        for name, (point, published, true) in distributions.items():
            against_truth = None if known is None else score(known, point, true, scale)
            found.append(Scored(name, step, score(outcome, point, published, scale), against_truth))
    return found


def simple_rules(values: Floats, structure: Structure, step: int) -> dict[str, Floats]:
    """What simple rules say about each period, `step` periods before it.

    Repeat the last season, and the longest one; the mean of the last four of the longest, and of all earlier periods
    of the same phase; repeat the last value.
    """
    season, longest = structure.main, structure.longest
    rules = {SEASONAL: _repeated(values, season, step)} if season > 1 else {}
    if longest > season:
        rules[LONGEST] = _repeated(values, longest, step)
    rules[LAST_FOUR] = mean_of_known(
        np.stack([_repeated(values, longest, step + back * longest) for back in range(4)]), axis=0
    )
    cycles = np.pad(values, (0, -len(values) % season), constant_values=np.nan).reshape(-1, season)
    known = np.isfinite(cycles)
    count, total = np.cumsum(known, axis=0), np.cumsum(np.where(known, cycles, 0.0), axis=0)
    means = np.where(count > 0, total / np.maximum(count, 1), np.nan).ravel()[: len(values)]
    rules[MEAN] = _repeated(means, season, step)
    rules[LAST] = _shifted(values, step)
    return rules


def _repeated(values: Floats, season: int, step: int) -> Floats:
    """Values of whole seasons ago, at least `step` periods."""
    return _shifted(values, -(-step // season) * season)


def _shifted(values: Floats, by: int) -> Floats:
    """Values of `by` periods ago, or of the newest period before that has one."""
    filled = values[np.maximum.accumulate(np.where(np.isfinite(values), np.arange(len(values)), 0))]
    return np.concatenate([np.full(min(by, len(values)), np.nan), filled[: max(0, len(values) - by)]])
