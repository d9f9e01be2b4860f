"""Forecasts of all surveys that ask for them: what to publish when finals are published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from protocols.scheme import Scheme
from protocols.wire import Lookup
from stream_app.log.flushes import Output
from stream_app.results.forecast_result import ForecastResult
from stream_app.results.histograms import Histogram
from stream_app.results.reading import PublishedResults, decode_result
from stream_app.results.result_topics import FORECASTS, HISTOGRAMS, ResultKey

if TYPE_CHECKING:
    from stream_app.results.forecaster import Forecaster

Noted = Callable[[str, int, int], None]  # survey, published numbers with a forecast, and the unexpected ones of them


def nothing_noted(survey: str, numbers: int, unexpected: int) -> None:
    """Default: unexpected publications are only in the forecasts."""


class Forecasting:
    """Makes forecasts from published finals. All state can be made again from what is published."""

    def __init__(self, lookup: Lookup, published: PublishedResults, noted: Noted = nothing_noted) -> None:
        self._lookup = lookup
        self._published = published
        self._noted = noted
        self._forecasters: dict[str, Forecaster] = {}

    def wanted(self, survey: str) -> Scheme | None:
        """The survey, if it asks for forecasts."""
        scheme = self._lookup(survey)
        return scheme if scheme is not None and scheme.survey.forecast is not None else None

    def after(self, final: Output) -> Iterator[Output]:
        """The forecasts to publish now that this final is published."""
        key, piece = HISTOGRAMS.decode_key(final.key)
        if piece is not None or self.wanted(key.survey) is None:
            return
        forecaster, histogram = self._forecasters.get(key.survey), decode_result(HISTOGRAMS, key, final.value)
        if forecaster is None or histogram is None or histogram.period > forecaster.through + 1:
            yield from self.catch_up(key.survey)
        else:
            yield from self._extended(forecaster, histogram)

    def catch_up(self, survey: str) -> Iterator[Output]:
        """The forecasts that are not published although their finals are: all, if none was published before."""
        scheme = self.wanted(survey)
        if scheme is None:
            return
        from stream_app.results.forecaster import (
            Forecaster,  # with numba and scipy, which readers of results do without
        )

        published_through = max((key.period or 0 for key in self._published.values(FORECASTS, survey)), default=-1)
        first = Forecaster.since(scheme, published_through)
        forecaster = self._forecasters[survey] = Forecaster(scheme)
        for histogram in self._published.read(HISTOGRAMS, survey, since=first):
            yield from self._extended(forecaster, histogram, published_through)

    def forget(self, survey: str) -> None:
        """Begin again with what is published at the next final."""
        self._forecasters.pop(survey, None)

    def _extended(self, forecaster: Forecaster, histogram: Histogram, published_through: int = -1) -> Iterator[Output]:
        made = forecaster.extend(histogram, publish=histogram.period > published_through)
        if made is not None:
            yield from self._messages(made)

    def _messages(self, made: ForecastResult) -> list[Output]:
        numbers = sum(int(np.isfinite(table.stretch).sum()) for table in made.tables if table.stretch is not None)
        self._noted(made.survey, numbers, sum(len(table.unexpected) for table in made.tables))
        return FORECASTS.messages(ResultKey(made.survey, made.period), made)
