"""Results as events, which a page takes one by one: `{"kind", "survey", "key", "record"}`.

A later event with the same key replaces the earlier one. Records have the names of the published results. What all
results of a survey have in common (names of values, guarantees) is left out of them: it is in the event of the survey
(`pages.about`). Columns are cut to the values that a page shows.

    mobility    the windows and the triangle cells that end with one period
    live        the provisional histograms of the open periods, and what was refused
    nowcast     the nowcasts of one period, for pages that are told of them apart from its mobility report
    forecast    what was forecast after one period
    status      how a survey is doing, for the page of all surveys (`pages.dashboard.making`)
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, TypedDict, TypeVar

import numpy as np
from pydantic import BaseModel

from analytics.mobility import MobilityReport, Quantities, WindowReport
from protocols.arrays import Floats, Places
from protocols.survey import TIMES, Survey
from views.forecasts import ForecastResult
from views.results import Histogram, Live, NowcastResult

MOST_VALUES = 200
"""How many values of an attribute a record shows: the most frequent ones. Tables and topics have all."""
MOST_PAIRS = 2000
"""The same for pairs of a cross."""

Record = dict[str, Any]
_last = attrgetter("last")  # the period with which a window or a cell of the triangle ends
M = TypeVar("M", bound=BaseModel)
_HEADER = {"schema_version", "fingerprint", "guarantees", "pieces"}  # of histograms: the same in every record
_COUNTS = {"mechanism", "values", "axes", "statistics"}  # of their attributes
_COMPARED = {"change": True, "baseline": True}  # the page compares by itself, with the baseline that is chosen there


class Event(TypedDict):
    """One thing that a page is told."""

    kind: str
    survey: str | None
    key: str
    record: Record


def event(kind: str, survey: str | None, record: Record, period: int | None = None) -> Event:
    """An event with the key that belongs to it.

    >>> event("live", "buttons", {})["key"], event("mobility", "buttons", {}, 3)["key"]
    ('live/buttons', 'mobility/buttons/3')
    """
    parts = (kind, survey, period)
    return {
        "kind": kind,
        "survey": survey,
        "key": "/".join(str(part) for part in parts if part is not None),
        "record": record,
    }


def mobility_events(report: MobilityReport) -> Iterator[Event]:
    """The events of a report of one or many periods: one for each period with which windows end."""
    triangle = {last: list(cells) for last, cells in groupby(sorted(report.triangle, key=_last), _last)}
    for last, windows in groupby(sorted(report.windows, key=_last), _last):
        record = {
            "period": last,
            "windows": [_window(window) for window in windows],
            "triangle": [cell.model_dump(mode="json", exclude={"last"}) for cell in triangle.get(last, ())],
        }
        yield event("mobility", report.survey, record, last)


def live_event(live: Live) -> Event:
    """The event of a survey's live status."""
    record = live.model_dump(mode="json", exclude={"open": True, "schema_version": True, "pieces": True})
    return event("live", live.survey, record | {"open": [_histogram(histogram) for histogram in live.open]})


def nowcast_event(found: NowcastResult) -> Event:
    """The event of published nowcasts of values: those that the mobility report of the period shows."""
    known = [table for table in found.tables if table.kind == "values" and table.nowcast is not None]
    cut = [_cut(table, _most_frequent(table.attribute, table.value)) for table in known]
    tables = [table.model_dump(mode="json", include={"attribute", "nowcast"}) for table in cut]
    return event("nowcast", found.survey, {"period": found.period, "tables": tables}, found.period)


def forecast_event(survey: Survey, forecast: ForecastResult) -> Event:
    """The event of a published forecast, with the beginning of every period ahead, and the end of the last."""
    ahead = max((len(table.mean) for table in forecast.tables if table.mean is not None), default=0)
    begins = [survey.bounds(forecast.period + step)[0].isoformat() for step in range(1, ahead + 2)]
    exclude: Any = {*_HEADER, "period_seconds"}
    record = forecast.model_dump(mode="json", exclude=exclude, exclude_none=True)
    return event("forecast", survey.id, record | {"begins": begins}, forecast.period)


def past_forecast_event(forecast: ForecastResult) -> Event:
    """The event of a forecast that is no longer the newest: what a page still shows of it is what was unexpected."""
    include: Any = {"period": True, "tables": {"__all__": {"kind", "attribute", "unexpected"}}}
    return event("forecast", forecast.survey, forecast.model_dump(mode="json", include=include), forecast.period)


def result_events(
    survey: Survey, report: MobilityReport, live: Live | None = None, forecasts: Iterable[ForecastResult] = ()
) -> Iterator[Event]:
    """All results of one survey: what a static page shows."""
    yield from mobility_events(report)
    if live is not None:
        yield live_event(live)
    made = sorted(forecasts, key=lambda forecast: forecast.period)
    yield from map(past_forecast_event, made[:-1])
    yield from (forecast_event(survey, newest) for newest in made[-1:])


def _window(window: WindowReport) -> Record:
    exclude: Any = {**_COMPARED, "attributes": {"__all__": {"values": _COMPARED, "groups": _COMPARED}}}
    shares = {part.name: part.values for part in window.attributes}
    places = {name: None if own is None else _most_frequent(name, own.share.value) for name, own in shares.items()}
    values = {name: None if own is None else _cut(own, places[name]) for name, own in shares.items()}
    cut = [part.model_copy(update={"values": values[part.name]}) for part in window.attributes]
    return _record(window, cut, places, exclude)


def _histogram(histogram: Histogram) -> Record:
    exclude: Any = {**dict.fromkeys(_HEADER, True), "presence_only": True, "attributes": {"__all__": _COUNTS}}
    places = {part.name: _most_frequent(part.name, part.estimate) for part in histogram.attributes}
    return _record(histogram, [_cut(part, places[part.name]) for part in histogram.attributes], places, exclude)


def _record(found: BaseModel, cut: list[Any], places: dict[str, Places | None], exclude: Any) -> Record:
    """The record of a window or a histogram with cut attributes, which say which places were kept."""
    shown = found.model_copy(update={"attributes": tuple(cut)})
    record = shown.model_dump(mode="json", exclude=exclude, exclude_none=True)
    for attribute in record.get("attributes", ()):
        if (kept := places[attribute["name"]]) is not None:
            attribute["places"] = kept.tolist()
    return record


def _most_frequent(name: str, shares: Floats | None) -> Places | None:
    """The places of the values that a record shows, in the order of the attribute; None: of all."""
    most = MOST_PAIRS if TIMES in name else MOST_VALUES
    if shares is None or len(shares) <= most:
        return None
    return np.sort(np.argsort(-np.nan_to_num(shares, nan=-np.inf), kind="stable")[:most])


def _cut(columns: M, places: Places | None) -> M:
    """A model whose columns have the entries of these places only."""
    if places is None:
        return columns
    kept: dict[str, Any] = {}
    for name in type(columns).model_fields:
        entries = getattr(columns, name)
        if isinstance(entries, np.ndarray):
            kept[name] = entries[places]
        elif isinstance(entries, Quantities):
            kept[name] = _cut(entries, places)
    return columns.model_copy(update=kept)
