"""The view that forecasts, made from finals: a model is fitted to what histograms say, and is kept between finals.

In tables, a forecast has one row for each name and period ahead.
"""

from collections.abc import Iterator
from datetime import datetime

import numpy as np

from analytics.columns import Part, flat
from protocols.arrays import Floats
from protocols.scheme import Scheme
from protocols.survey import Survey
from stream_app.finals import Final
from stream_app.log import TopicName
from views.forecasts.model import ForecastResult, ForecastTable
from views.past import Past, PeriodAnswers
from views.results.histogram import Histogram, build_histogram
from views.view import View

_INTERVALS = ("truth_80", "truth_95", "publication_80", "publication_95")
COLUMNS = {
    "begin": datetime,
    "end": datetime,
    "ahead": int,
    **dict.fromkeys(["kind", "attribute", "name"], str),
    **dict.fromkeys(["mean", *(f"{interval}_{end}" for interval in _INTERVALS for end in ("low", "high"))], float),
    "unexpected": bool,
}


def make(past: Past) -> ForecastResult | None:
    if past.scheme.survey.forecast is None:
        return None
    from views.forecasts.forecaster import Forecaster  # with numba and scipy, which readers of results do without

    known: Forecaster | None = past.memory.get("forecaster")
    if known is None or known.through != past.period - 1:
        known = Forecaster(past.scheme)
        for final in past.finals[-reach(past.scheme) : -1]:
            known.extend(_histogram(past.scheme, final), publish=False)
    past.memory["forecaster"] = known
    return known.extend(_histogram(past.scheme, past.newest))


def _histogram(scheme: Scheme, final: Final) -> Histogram:
    return build_histogram("final", scheme, final.period, PeriodAnswers.of(scheme, final))


def reach(scheme: Scheme) -> int:
    """How many finals matter for the forecast after the last of them: two fits may lie so far apart."""
    if scheme.survey.forecast is None:
        return 1
    from analytics.forecasting import Structure
    from views.forecasts.forecaster import FEWEST_BETWEEN, LATER_EVERY, history_length

    structure = Structure.of(scheme.survey.forecast.seasons)
    return 1 + LATER_EVERY * max(FEWEST_BETWEEN, structure.longest) + history_length(structure)


def forecast_parts(result: ForecastResult, survey: Survey) -> Iterator[Part]:
    """The rows of a forecast, whose period is the last one that it knows; none of what is suppressed.

    The period that is forecast comes `ahead` periods after it, from `begin` to `end`. `unexpected` is about the newest
    publication of a name.
    """
    yield Part.without_rows(COLUMNS)
    for table in result.tables:
        if table.mean is not None:
            yield _part(table, table.mean, result.period, survey)


def _part(table: ForecastTable, mean: Floats, period: int, survey: Survey) -> Part:
    steps, names = mean.shape
    bounds = [survey.bounds(period + step) for step in range(1, steps + 1)]
    numbers = {name: column.ravel() for name, column in flat(table).items() if np.shape(column) == mean.shape}
    entries = {
        "begin": [begin for begin, _ in bounds for _ in range(names)],
        "end": [end for _, end in bounds for _ in range(names)],
        "ahead": np.repeat(np.arange(1, steps + 1), names),
        "kind": table.kind,
        "attribute": table.attribute,
        "name": table.names * steps,
        "unexpected": [name in table.unexpected for name in table.names] * steps,
        **numbers,
    }
    return Part.of(COLUMNS, steps * names, entries)


FORECASTS = View(
    TopicName("forecasts"),
    "forecast",
    ForecastResult,
    make,
    reach,
    lambda found, survey: {"forecasts": forecast_parts(found, survey)},
)
