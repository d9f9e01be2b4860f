"""The view that forecasts: a model is fitted to what histograms say, and is kept between finals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocols.scheme import Scheme
from stream_app.finals import Final
from stream_app.log import TopicName
from views.forecasts.model import ForecastResult
from views.forecasts.tables import forecast_parts
from views.past import Past, PeriodAnswers
from views.results.histogram import Histogram
from views.results.period import build_histogram
from views.view import View

if TYPE_CHECKING:
    from views.forecasts.forecaster import Forecaster


def make(past: Past) -> ForecastResult | None:
    if past.scheme.survey.forecast is None:
        return None
    from views.forecasts.forecaster import Forecaster  # with numba and scipy, which readers of results do without

    known: Forecaster | None = past.memory.get("forecaster")
    if known is None or known.through != past.period - 1:
        known = Forecaster(past.scheme)
        for final in past.last(reach(past.scheme))[:-1]:
            known.extend(_histogram(past.scheme, final), publish=False)
    past.memory["forecaster"] = known
    return known.extend(_histogram(past.scheme, past.newest))


def _histogram(scheme: Scheme, final: Final) -> Histogram:
    return build_histogram("final", scheme, final.period, PeriodAnswers.of(scheme, final))


def reach(scheme: Scheme) -> int:
    if scheme.survey.forecast is None:
        return 1
    from views.forecasts.forecaster import reach

    return reach(scheme)


FORECASTS = View(
    TopicName("forecasts"),
    "forecast",
    ForecastResult,
    make,
    reach,
    lambda found, survey: {"forecasts": forecast_parts(found, survey)},
)
