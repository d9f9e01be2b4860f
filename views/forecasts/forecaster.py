"""Forecasts of a survey from its finals, period by period.

Parameters are fitted at fixed period numbers, to a bounded history; between them every period costs the same. So a
forecast depends on the finals of the last periods alone, and one that is made again after a restart has the same bytes.
"""

from collections import deque
from itertools import groupby

import numpy as np

from analytics.estimation import decimals
from analytics.forecasting import MODEL, SEEN_CYCLES, Series, Structure, Tracked, interval_ends, values_needed
from protocols.arrays import Floats, Mask, Whole
from protocols.scheme import Scheme
from views.forecasts.model import ForecastResult, ForecastTable, Intervals
from views.forecasts.observing import cells, observe
from views.results.histogram import Histogram

EXACT = 6  # decimals of numbers without errors
FEWEST_HISTORY, MOST_HISTORY, HISTORY_CYCLES = 400, 3000, 8
FEWEST_BETWEEN, OFTEN_AT_FIRST, LATER_EVERY = 50, 3, 4


def refit_after(period: int, structure: Structure) -> bool:
    """Whether parameters are fitted again after this period: after each longest season at first, then every fourth.

    >>> [period for period in range(600) if refit_after(period, Structure.of([7, 60]))]
    [59, 119, 179, 239, 479]
    """
    cycles, rest = divmod(period + 1, max(FEWEST_BETWEEN, structure.longest))
    return rest == 0 and (cycles <= OFTEN_AT_FIRST or cycles % LATER_EVERY == 0)


def history_length(structure: Structure) -> int:
    """How many periods parameters are fitted to, at most."""
    longest = structure.longest
    return max(min(max(FEWEST_HISTORY, HISTORY_CYCLES * longest), MOST_HISTORY), SEEN_CYCLES * longest)


class Forecaster:
    """The forecasts of one survey, which must ask for them. Give it the finals of consecutive periods."""

    def __init__(self, scheme: Scheme) -> None:
        assert scheme.survey.forecast is not None
        self._scheme = scheme
        self._ahead = scheme.survey.forecast.ahead
        self._structure = Structure.of(scheme.survey.forecast.seasons)
        self._cells = cells(scheme)
        self._history: deque[Floats] = deque(maxlen=history_length(self._structure))  # [part, cell]
        self._tracked: list[Tracked | None] = []  # for each cell, once there is a fit; None: too little is known
        self._fitted_after = self._trained = -1
        self.through = -1

    def extend(self, histogram: Histogram, publish: bool = True) -> ForecastResult | None:
        """Take in the next final; returns the forecast after it, once enough is known and if it is wanted."""
        period, newest = histogram.period, observe(self._scheme, histogram)
        self.through = period
        self._history.append(newest)
        unexpected = np.zeros(len(self._cells), dtype=np.bool_)
        number = self._numbers(period, 1)
        for place, one in enumerate(self._tracked):
            if one is not None:
                value, fresh, memo = newest[:, place]
                unexpected[place] = one.take(value, fresh, memo, number)
        if refit_after(period, self._structure):
            self._refit()
        return self._result(period, newest, unexpected) if publish and self._tracked else None

    def _refit(self) -> None:
        since = self.through + 1 - len(self._history), self._scheme.survey.calendar.on_the_wall
        values, fresh, memo = np.stack(self._history, axis=-1)
        history = [Series(str(cell), values[i], fresh[i], memo[i], *since) for i, cell in enumerate(self._cells)]
        needed = values_needed(self._structure)
        tracked = [Tracked(one, self._structure) if one.known >= needed else None for one in history]
        # Never keep an earlier fit: after a restart, it would not be known.
        self._tracked = tracked if any(tracked) else []
        self._fitted_after, self._trained = self.through, len(self._history)

    def _numbers(self, first: int, periods: int) -> Whole:
        return self._scheme.survey.calendar.on_the_wall(np.arange(first, first + periods))

    def _result(self, period: int, newest: Floats, unexpected: Mask) -> ForecastResult:
        survey, numbers = self._scheme.survey, self._numbers(period + 1, self._ahead)
        made = np.full((3, len(self._cells), self._ahead), np.nan)  # mean, and deviations for truth and publication
        for place, one in enumerate(self._tracked):
            if one is not None:
                known = one.forecast(numbers)
                made[:, place] = known.mean, known.deviation("truth"), known.deviation("publication")
        few = self._too_few(made[0, 0])
        return ForecastResult(
            survey=survey.id,
            fingerprint=self._scheme.fingerprint,
            period=period,
            begin=survey.calendar.local(survey.calendar.end(period)),
            period_seconds=int(survey.period.total_seconds()),
            model=MODEL,
            seasons=self._structure.seasons,
            fitted_after=self._fitted_after,
            trained=self._trained,
            tables=tuple(
                self._table(list(places), made, few, unexpected, newest)
                for _, places in groupby(range(len(self._cells)), lambda place: self._cells[place][:2])
            ),
        )

    def _too_few(self, visitors: Floats) -> Mask:
        """The periods ahead whose results will probably be suppressed.

        Few reports are expected in them, or the last period of the same phase was suppressed: a forecast must not fill
        in what is never published.
        """
        season, survey = self._structure.main, self._scheme.survey
        smallest = min(map(self._scheme.answering_share, self._scheme.questions))
        cycle = [bool(np.isnan(seen[0, 0])) for seen in list(self._history)[-season:]]
        with np.errstate(invalid="ignore"):
            few = visitors * smallest < survey.threshold
        return np.asarray(few | np.resize(cycle, self._ahead))

    def _table(self, places: list[int], made: Floats, few: Mask, unexpected: Mask, newest: Floats) -> ForecastTable:
        kind, attribute, _ = self._cells[places[0]]
        named = {"kind": kind, "attribute": attribute, "names": tuple(self._cells[place].value for place in places)}
        if not np.isfinite(newest[0, places]).any():
            return ForecastTable(**named, suppressed="minimum")
        some, (mean, truth, publication) = [self._tracked[place] for place in places], made[:, places]
        mean = np.where(few, np.nan, mean)
        ends = {
            f"{about}_{confidence}": _intervals(mean, deviation, confidence / 100)
            for about, deviation in (("truth", truth), ("publication", publication))
            for confidence in (80, 95)
        }
        return ForecastTable(
            **named,
            suppressed=None,
            mean=_columns(mean, publication),
            stretch=np.round([np.nan if one is None else one.stretch for one in some], 3),
            unexpected=tuple(self._cells[place].value for place in places if unexpected[place]),
            **ends,
        )


def _intervals(mean: Floats, deviation: Floats, confidence: float) -> Intervals:
    low, high = interval_ends(mean, deviation, confidence)
    return Intervals(low=_columns(low, deviation), high=_columns(high, deviation))


def _columns(numbers: Floats, deviation: Floats) -> Floats:
    """Numbers `[name, step]` as they are published: a column for each step, with the decimals that errors carry."""
    places = decimals(deviation)
    return np.asarray(np.round(numbers.T, EXACT if places is None else places) + 0.0)  # + 0.0: no negative zero
