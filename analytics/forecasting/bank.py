"""Many series forecast together, period by period: an update costs the same however long the history is.

A bank is made from a bounded history, to which all parameters are fitted. From then on it takes one period at a time.
The same history and the same periods give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analytics.estimation.estimates import quantile
from analytics.forecasting.filtering import log_likelihood, predict_many, update_many
from analytics.forecasting.fitting import fit
from analytics.forecasting.predicting import ALERT, calibration
from analytics.forecasting.series import CYCLES as NOISE_CYCLES
from analytics.forecasting.series import UNSEASONAL, Series, future_noise
from analytics.forecasting.structure import CYCLES, FEWEST_VALUES, Structure
from protocols.arrays import Floats, Mask

FEWEST_HISTORY, MOST_HISTORY, HISTORY_CYCLES = 400, 3000, 8
FEWEST_BETWEEN, OFTEN_AT_FIRST, LATER_EVERY = 50, 3, 4


def refit_after(period: int, structure: Structure) -> bool:
    """Whether parameters are fitted again after this period: after each longest season at first, then every fourth.

    >>> [period for period in range(600) if refit_after(period, Structure.of([7, 60]))]
    [59, 119, 179, 239, 479]
    """
    cycles, rest = divmod(period + 1, max([FEWEST_BETWEEN, *structure.seasons]))
    return rest == 0 and (cycles <= OFTEN_AT_FIRST or cycles % LATER_EVERY == 0)


def longest_between(structure: Structure) -> int:
    """How many periods may lie between two fits."""
    return LATER_EVERY * max([FEWEST_BETWEEN, *structure.seasons])


def history_length(structure: Structure) -> int:
    """How many periods parameters are fitted to, at most."""
    longest = max(structure.seasons, default=1)
    return max(min(max(FEWEST_HISTORY, HISTORY_CYCLES * longest), MOST_HISTORY), CYCLES * longest)


@dataclass(frozen=True, eq=False)
class BankForecast:
    """Forecasts `[series, step]`; NaN for series of which too little is known."""

    mean: Floats
    truth: Floats  # standard deviations
    publication: Floats
    stretch: Floats  # [series]


class Bank:
    """Filters of many series with one structure, fitted to `history`, which ends with the newest period."""

    def __init__(self, structure: Structure, history: Sequence[Series]) -> None:
        self.structure = structure
        self.trained = len(history[0])
        self._next = history[0].first + len(history[0])
        size, count = structure.size, len(history)
        self._x, self._p = np.zeros((count, size)), np.zeros((count, size, size))
        self._q, self._phi = np.zeros((count, size)), np.zeros(count)
        self._irregular, self.stretch = np.full((2, count), np.nan)
        needed = max([FEWEST_VALUES, *(CYCLES * season for season in structure.seasons)])
        regressors = structure.regressors(history[0].first, self.trained)
        for place, series in enumerate(history):
            if series.known < needed:
                continue
            fitted = fit(series.values, series.fresh, structure, series.first)
            self.stretch[place], _ = calibration(series, fitted)
            self._q[place], self._phi[place], self._irregular[place] = fitted.parameters.noise(structure)
            x, p = fitted.first_state()
            noise = series.fresh + self._irregular[place]
            log_likelihood(series.values, noise, regressors, x, p, self._q[place], self._phi[place])
            self._x[place], self._p[place] = x, p
        # [kind, series, period]: as much as the size of future noise is averaged over
        kept = NOISE_CYCLES * structure.main if structure.main > 1 else UNSEASONAL
        self._noise = np.stack([[getattr(one, kind)[-kept:] for one in history] for kind in ("fresh", "memo")])

    def update(self, values: Floats, fresh: Floats, memo: Floats) -> Mask:
        """Take in the next period; returns which of the values left the 99 % interval of their forecast."""
        regressors = self.structure.regressors(self._next, 1)
        mean, variance = np.empty((2, len(values), 1))
        predict_many(self._x, self._p, self._q, self._phi, regressors, mean, variance)
        model = (variance[:, 0] + self._irregular) * self.stretch**2
        with np.errstate(invalid="ignore"):
            far = np.abs(values - mean[:, 0]) > quantile(ALERT) * np.sqrt(model + fresh)
        seen = np.where(np.isnan(self._irregular), np.nan, values)
        update_many(seen, fresh + self._irregular, regressors[0], self._x, self._p, self._q, self._phi)
        self._noise = np.concatenate([self._noise[:, :, 1:], np.stack([fresh, memo])[:, :, None]], axis=2)
        self._next += 1
        return np.asarray(far)

    def forecast(self, ahead: int) -> BankForecast:
        """The next periods of all series."""
        count = len(self._x)
        mean, variance = np.empty((2, count, ahead))
        predict_many(self._x, self._p, self._q, self._phi, self.structure.regressors(self._next, ahead), mean, variance)
        model = (variance + self._irregular[:, None]) * self.stretch[:, None] ** 2
        fresh, memo = future_noise(self._noise, self.structure.main, ahead)
        unknown = np.isnan(self._irregular)
        mean[unknown] = np.nan
        return BankForecast(mean, np.sqrt(model + memo), np.sqrt(model + fresh), self.stretch)
