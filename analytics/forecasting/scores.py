"""Scores of forecasts against what came: of points, of intervals, and of whole distributions.

All forecasts are normal distributions. Against publications, errors contain the fresh noise of the publication itself:
RMSE^2 against the truth is about RMSE^2 against publications less mean R.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import pi, sqrt
from typing import Any

import numpy as np
from scipy.stats import kstest, norm

from analytics.estimation.estimates import quantile
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
    pit_p_value: float
    """Of Kolmogorov and Smirnov's test that these are even."""

    def record(self) -> dict[str, Any]:
        return asdict(self)


def score(outcome: Floats, mean: Floats, deviation: Floats, scale: float | None = None) -> Scores | None:
    """Scores over all outcomes that are known (not NaN); None if there is none. `scale` is MASE's denominator.

    >>> right = score(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]), np.ones(3), scale=2.0)
    >>> round(right.mae, 3), round(right.rmse, 3), round(right.mase, 3), right.coverage_95
    (0.333, 0.577, 0.167, 1.0)
    """
    known = np.isfinite(outcome) & np.isfinite(mean)
    if not known.any():
        return None
    y, m, sd = outcome[known], mean[known], np.maximum(deviation[known], 1e-300)
    error = np.abs(y - m)
    mae, place = float(error.mean()), norm.cdf((y - m) / sd)
    return Scores(
        count=len(y),
        mae=mae,
        rmse=float(sqrt((error**2).mean())),
        mase=mae / scale if scale else None,
        crps=float(crps(y, m, sd).mean()),
        coverage_80=float((error <= quantile(0.8) * sd).mean()),
        coverage_95=float((error <= quantile(0.95) * sd).mean()),
        width_95=float((2 * quantile(0.95) * sd).mean()),
        interval_score_95=float(interval_score(y, m, sd, 0.95).mean()),
        pit=tuple(np.histogram(place, BINS, (0, 1))[0].tolist()),
        pit_p_value=float(kstest(place, "uniform").pvalue),
    )


def crps(y: Floats, mean: Floats, deviation: Floats) -> Floats:
    """The continuous ranked probability score of a normal forecast (Gneiting and Raftery, 2007).

    >>> crps(np.array([0.0]), np.array([0.0]), np.array([1.0])).round(4).tolist()
    [0.2337]
    """
    z = (y - mean) / deviation
    return np.asarray(deviation * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / sqrt(pi)))


def interval_score(y: Floats, mean: Floats, deviation: Floats, confidence: float) -> Floats:
    """The width of the interval, and 2 / alpha times how far the outcome lies outside."""
    half, alpha = quantile(confidence) * deviation, 1 - confidence
    return np.asarray(2 * half + 2 / alpha * np.maximum(np.abs(y - mean) - half, 0))
