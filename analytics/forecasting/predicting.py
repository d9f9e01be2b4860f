"""Forecasts of a series with intervals of two kinds: of the truth, and of its publication (docs/forecasting.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

import numpy as np

from analytics.estimation.estimates import quantile
from analytics.forecasting.filtering import NO_ORIGINS, log_likelihood, move, predict, update
from analytics.forecasting.fitting import Fit, fit
from analytics.forecasting.structure import CYCLES, UNSEASONAL, Series, Structure, future_noise
from protocols.arrays import Floats, Whole

MODEL = "level + AR(1) + harmonics, Kalman"
CALIBRATED_OVER, FEWEST_CALIBRATED = 200, 50
ALERT = 0.99  # confidence of the interval that publications rarely leave

About = Literal["truth", "publication"]


@dataclass(frozen=True, eq=False)
class Forecast:
    """Normal forecasts `[step]`: step 0 is the period after the last one. Not clipped: they may be negative."""

    mean: Floats
    model: Floats  # variance of what the model does not know, calibrated
    memo: Floats  # B
    fresh: Floats  # R
    stretch: float  # s: by how much calibration widened the model's standard deviation; 1 if it did not
    calibrated: int  # publications over which it was calibrated; 0: too few
    trained: int  # values that the parameters are fitted on
    fit: Fit

    def deviation(self, about: About) -> Floats:
        """The standard deviation for the truth or for what will be published."""
        return np.asarray(np.sqrt(self.model + (self.memo if about == "truth" else self.fresh)))

    def interval(self, about: About, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends."""
        return interval_ends(self.mean, self.deviation(about), confidence)


def interval_ends(mean: Floats, deviation: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Lower and upper ends of the intervals of normal distributions."""
    half = quantile(confidence) * deviation
    return mean - half, mean + half


class Tracked:
    """A series that was filtered through its newest period, and goes on: an update costs the same however long it is.

    The same series and the same periods after it give the same bits.
    """

    def __init__(self, series: Series, structure: Structure, fitted: Fit | None = None) -> None:
        """Without `fitted`, the parameters are fitted to the series."""
        self.fit, self.trained = fitted or fit(series, structure), series.known
        self.stretch, self.calibrated = calibration(series, self.fit)
        self.filters = self.fit.filter(), self.fit.filter(self.fit.cautious)  # for means, and for variances
        regressors = self.fit.structure.regressors(series.numbers(0, len(series)))
        for one in self.filters:
            log_likelihood(series.values, series.fresh, regressors, *one, *NO_ORIGINS)
        # [kind, period]: as much as the size of future noise is averaged over
        kept = CYCLES * structure.main if structure.main > 1 else UNSEASONAL
        self._noise = np.stack([series.memo[-kept:], series.fresh[-kept:]])

    def forecast(self, numbers: Whole) -> Forecast:
        """The next periods, which have these numbers."""
        mean, model = self._ahead(numbers)
        memo, fresh = future_noise(self._noise, self.fit.structure.main, len(numbers))
        return Forecast(mean, model, memo, fresh, self.stretch, self.calibrated, self.trained, self.fit)

    def take(self, value: float, fresh: float, memo: float, numbers: Whole) -> bool:
        """Take in the next period, which has this one number; NaN: nothing was published.

        Returns whether the value left the 99 % interval of its forecast.
        """
        (mean,), (model,) = self._ahead(numbers)
        (regressors,) = self.fit.structure.regressors(numbers)
        for x, p, q, phi, irregular in self.filters:
            move(x, p, q, phi)
            if not np.isnan(value):
                update(x, p, regressors, value, fresh + irregular, np.empty(len(x)))
        self._noise = np.concatenate([self._noise[:, 1:], [[memo], [fresh]]], axis=1)
        return bool(abs(value - mean) > quantile(ALERT) * sqrt(model + fresh))

    def _ahead(self, numbers: Whole) -> tuple[Floats, Floats]:
        """The mean of the next periods, and the calibrated variance of the model."""
        regressors = self.fit.structure.regressors(numbers)
        found = np.empty((2, 2, len(numbers)))
        for one, (mean, variance) in zip(self.filters, found, strict=True):
            predict(*one, regressors, mean, variance)
        return found[0, 0], found[1, 1] * self.stretch**2


def forecast(series: Series, structure: Structure, ahead: int, fitted: Fit | None = None) -> Forecast:
    """The next `ahead` periods. Without `fitted`, the parameters are fitted to the series.

    >>> steady = Series.exact("visits", 100 + 10 * np.sin(np.arange(200) * np.pi / 6))
    >>> forecast(steady, Structure.of([12]), 12).mean.round().tolist()[:4]
    [91.0, 90.0, 91.0, 95.0]
    """
    return Tracked(series, structure, fitted).forecast(series.numbers(len(series), len(series) + ahead))


def adding_up(forecasts: Sequence[Forecast]) -> list[Forecast]:
    """Forecasts of shares made to add up to 1: the less certain a share is, the more of the difference it takes."""
    means, variances = (np.stack([getattr(made, part) for made in forecasts]) for part in ("mean", "model"))
    means = means + variances / variances.sum(axis=0) * (1.0 - means.sum(axis=0))
    return [replace(made, mean=mean) for made, mean in zip(forecasts, means, strict=True)]


def from_all_origins(series: Series, fitted: Fit, first: int, ahead: int) -> tuple[Floats, Floats]:
    """Forecasts `[origin, step]` with their model variances; origin 0 has seen the periods before `first`."""
    regressors = fitted.structure.regressors(series.numbers(0, len(series) + ahead))
    found = np.empty((2, 2, len(series) - first, ahead))
    for point, forecasts in zip((fitted.likeliest, fitted.cautious), found, strict=True):
        log_likelihood(series.values, series.fresh, regressors, *fitted.filter(point), *forecasts)
    return found[0, 0], found[1, 1]


def calibration(series: Series, fitted: Fit) -> tuple[float, int]:
    """By how much forecasts one step ahead erred more than the model expected, and over how many publications.

    s^2 = max(1, (mean squared error - mean R) / mean V), over the last publications; 1 and 0 if there are too few.
    Where R is large beside V, the mean squared error says little about V: s stays 1 unless the excess is more than two
    of its standard errors.
    """
    first = len(series) - min(CALIBRATED_OVER, series.known // 2)
    mean, variance = from_all_origins(series, fitted, first, 1)
    known = np.isfinite(series.values[first:])
    count = int(known.sum())
    if count < FEWEST_CALIBRATED:
        return 1.0, 0
    squared = float((((series.values[first:] - mean[:, 0])[known]) ** 2).mean())
    model, fresh = float(variance[:, 0][known].mean()), float(series.fresh[first:][known].mean())
    if squared < (model + fresh) * (1 + 2 * sqrt(2 / count)):
        return 1.0, count
    return max(1.0, sqrt((squared - fresh) / model)), count


def unexpected(series: Series, made: Forecast) -> tuple[tuple[int, ...], float]:
    """The places of values outside the interval that a forecast one period before gave to publications.

    And how many values lie outside that interval if nothing is unusual. Values at the very beginning are left out:
    every forecast begins with a season of surprises.
    """
    first = min(len(series) - 1, max(2 * made.fit.structure.main, FEWEST_CALIBRATED))
    mean, variance = from_all_origins(series, made.fit, first, 1)
    far = quantile(ALERT) * np.sqrt(variance[:, 0] * made.stretch**2 + series.fresh[first:])
    places = first + np.flatnonzero(np.abs(series.values[first:] - mean[:, 0]) > far)
    return tuple(places.tolist()), (1 - ALERT) * int(np.isfinite(series.values[first:]).sum())
