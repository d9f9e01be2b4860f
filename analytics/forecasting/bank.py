"""Many series forecast together, period by period: an update costs the same however long the history is.

A bank is made from a bounded history, to which all parameters are fitted. From then on it takes one period at a time.
The same history and the same periods give the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from analytics.estimation.estimates import quantile
from analytics.forecasting.predicting import ALERT, Tracked
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
    cycles, rest = divmod(period + 1, max(FEWEST_BETWEEN, structure.longest))
    return rest == 0 and (cycles <= OFTEN_AT_FIRST or cycles % LATER_EVERY == 0)


def longest_between(structure: Structure) -> int:
    """How many periods may lie between two fits."""
    return LATER_EVERY * max(FEWEST_BETWEEN, structure.longest)


def history_length(structure: Structure) -> int:
    """How many periods parameters are fitted to, at most."""
    longest = structure.longest
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
        self._newest = history[0][-1:]
        needed = max(FEWEST_VALUES, CYCLES * structure.longest)
        self._series = [Tracked.of(one, structure) if one.known >= needed else None for one in history]
        self.stretch = np.array([np.nan if one is None else one.stretch for one in self._series])
        # [kind, series, period]: as much as the size of future noise is averaged over
        kept = NOISE_CYCLES * structure.main if structure.main > 1 else UNSEASONAL
        self._noise = np.stack([[getattr(one, kind)[-kept:] for one in history] for kind in ("fresh", "memo")])

    def update(self, values: Floats, fresh: Floats, memo: Floats) -> Mask:
        """Take in the next period; returns which of the values left the 99 % interval of their forecast."""
        number, far = self._newest.numbers(1, 2), np.zeros(len(values), dtype=np.bool_)
        for place, one in enumerate(self._series):
            if one is not None:
                (mean,), (model,) = one.ahead(number)
                far[place] = abs(values[place] - mean) > quantile(ALERT) * sqrt(model + fresh[place])
                one.take(values[place], fresh[place], number)
        self._noise = np.concatenate([self._noise[:, :, 1:], np.stack([fresh, memo])[:, :, None]], axis=2)
        self._newest = replace(self._newest, first=self._newest.first + 1)
        return far

    def forecast(self, ahead: int) -> BankForecast:
        """The next periods of all series."""
        numbers = self._newest.numbers(1, 1 + ahead)
        mean, model = np.full((2, len(self._series), ahead), np.nan)
        for place, one in enumerate(self._series):
            if one is not None:
                mean[place], model[place] = one.ahead(numbers)
        fresh, memo = future_noise(self._noise, self.structure.main, ahead)
        return BankForecast(mean, np.sqrt(model + memo), np.sqrt(model + fresh), self.stretch)
