"""Forecasts as one page: a chart for each series, and what left its interval marked."""

from __future__ import annotations

from typing import Any

from hearsay.forecasts.forecasting import Outlook, Outlooks, finite
from hearsay.forecasts.time_axis import TimeAxis
from pages.events import event
from pages.static import static_page


def page(outlooks: Outlooks) -> str:
    """The page of all series."""
    title = f"Forecasts of {outlooks.source}"
    record = {
        "title": title,
        "lead": [
            "Two intervals of 95 %: that of the truth, and that of what will be published, which contains the noise of "
            "the publication. Crosses are publications that left the 99 % interval of the forecast one period before."
        ],
        "remarks": outlooks.remarks,
        "series": [_series(outlook, outlooks.axis) for outlook in outlooks.found],
    }
    return static_page(title, [event("outlook", None, record)])


def _series(outlook: Outlook, axis: TimeAxis) -> dict[str, Any]:
    series = outlook.series
    begins = [axis.at(place) for place in range(len(series))]
    return {
        "name": series.name,
        "known": series.known,
        "seasons": list(outlook.forecast.fit.structure.seasons),
        "begins": [begin if isinstance(begin, int) else begin.isoformat() for begin in begins],
        "values": finite(series.values),
        "ahead": outlook.rows(axis),
        "unexpected": list(outlook.unexpected),
        "backtest": [scored.record() for scored in outlook.scores],
    }
