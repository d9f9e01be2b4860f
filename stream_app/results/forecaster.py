"""Forecasts of a survey from its finals, period by period.

Parameters are fitted at fixed period numbers, to a bounded history; between them every period costs the same. So a
forecast depends on the finals of the last periods alone, and one that is made again after a restart has the same bytes.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from analytics.forecasting import (
    MODEL,
    Bank,
    BankForecast,
    Series,
    Structure,
    history_length,
    interval_ends,
    longest_between,
    refit_after,
)
from protocols.scheme import Scheme
from stream_app.results.forecast_result import CellForecast, ForecastResult, Interval, Numbers
from stream_app.results.histograms import Histogram
from stream_app.results.observing import Floats, Members, Observation, cells, observe

DIGITS = 6  # significant ones of published numbers


class Forecaster:
    """The forecasts of one survey, which must ask for them. Give it every final in the order of periods."""

    def __init__(self, scheme: Scheme) -> None:
        assert scheme.survey.forecast is not None
        self._scheme = scheme
        self._ahead = scheme.survey.forecast.ahead
        self._structure = Structure.of(scheme.survey.forecast.seasons)
        self._cells = cells(scheme)
        self._history: deque[Observation] = deque(maxlen=history_length(self._structure))
        self._bank: Bank | None = None
        self._fitted_after = -1
        self.through = -1

    @staticmethod
    def since(scheme: Scheme, period: int) -> int:
        """The first period whose final matters for forecasts after `period`."""
        assert scheme.survey.forecast is not None
        structure = Structure.of(scheme.survey.forecast.seasons)
        return max(0, period - longest_between(structure) - history_length(structure))

    def extend(self, histogram: Histogram, publish: bool = True) -> ForecastResult | None:
        """Take in the next final; returns the forecast after it, once enough is known and if it is to be published.

        A period that was taken in before changes nothing.
        """
        if histogram.period <= self.through:
            return None
        for missing in range(self.through + 1, histogram.period) if self._history else ():
            nothing = np.full(len(self._cells), np.nan)
            self._take(Observation(missing, nothing, nothing, nothing))
        newest = observe(self._scheme, histogram)
        unexpected = self._take(newest)
        return self._result(histogram.period, newest, unexpected) if publish and self._bank is not None else None

    def _take(self, seen: Observation) -> Members:
        """Update or refit; returns which cells were unexpected."""
        self.through = seen.period
        self._history.append(seen)
        unexpected = np.zeros(len(self._cells), dtype=np.bool_)
        if self._bank is not None:
            unexpected = self._bank.update(seen.values, seen.fresh, seen.memo)
        if refit_after(seen.period, self._structure):
            self._refit()
        return unexpected

    def _refit(self) -> None:
        values, fresh, memo = (
            np.stack([getattr(o, part) for o in self._history]).T for part in ("values", "fresh", "memo")
        )
        first = self._history[0].period
        bank = Bank(
            self._structure,
            [Series(str(cell), values[i], fresh[i], memo[i], first) for i, cell in enumerate(self._cells)],
        )
        # Never keep an earlier fit: after a restart, it would not be known.
        self._bank, self._fitted_after = (bank if np.isfinite(bank.stretch).any() else None), self.through

    def _result(self, period: int, newest: Observation, unexpected: Members) -> ForecastResult:
        survey, bank = self._scheme.survey, self._bank
        assert bank is not None
        made = bank.forecast(self._ahead)
        few = self._too_few(made)
        return ForecastResult(
            survey=survey.id,
            fingerprint=self._scheme.fingerprint,
            period=period,
            begin=survey.calendar.local(survey.calendar.end(period)),
            period_seconds=int(survey.period.total_seconds()),
            model=MODEL,
            seasons=self._structure.seasons,
            fitted_after=self._fitted_after,
            trained=bank.trained,
            cells=tuple(
                self._cell(place, made, few, bool(unexpected[place]), bool(np.isfinite(newest.values[place])))
                for place in range(len(self._cells))
            ),
        )

    def _too_few(self, made: BankForecast) -> Members:
        """The periods ahead whose results will probably be suppressed.

        Few reports are expected in them, or the last period of the same phase was suppressed: a forecast must not fill
        in what is never published.
        """
        season, survey = self._structure.main, self._scheme.survey
        parts = survey.one_in * (len(self._scheme.questions) if self._scheme.discloses else 1)
        cycle = [bool(np.isnan(seen.values[0])) for seen in list(self._history)[-season:]]
        with np.errstate(invalid="ignore"):
            few = made.mean[0] < survey.minimum * parts
        return np.asarray(few | np.resize(cycle, self._ahead))

    def _cell(self, place: int, made: BankForecast, few: Members, unexpected: bool, published: bool) -> CellForecast:
        cell = self._cells[place]
        named = {"attribute": cell.attribute or None, "value": cell.value, "group": cell.group}
        if not published or np.isnan(made.stretch[place]):
            return CellForecast(**named, suppressed=None if published else "minimum")
        mean = np.where(few, np.nan, made.mean[place])
        ends = {
            f"{about}_{confidence}": _interval(mean, getattr(made, about)[place], confidence / 100)
            for about in ("truth", "publication")
            for confidence in (80, 95)
        }
        stretch = _rounded(made.stretch[place : place + 1])[0]
        return CellForecast(
            **named, suppressed=None, mean=_rounded(mean), stretch=stretch, unexpected=unexpected, **ends
        )


def _interval(mean: Floats, deviation: Floats, confidence: float) -> Interval:
    low, high = interval_ends(mean, deviation, confidence)
    return Interval(low=_rounded(low), high=_rounded(high))


def _rounded(numbers: Floats) -> Numbers:
    """Numbers as they are published: rounded, so that a last bit makes no difference; null where there is none."""
    return tuple(float(f"{number:.{DIGITS}g}") if np.isfinite(number) else None for number in numbers.tolist())
