"""Series from published results: of every cell of a survey, or of visitors by kind and by window."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from analytics.forecasting import Series
from analytics.mobility import Quantity, WindowTruth
from analytics.windows import Window
from hearsay.forecasts.series_files import MONTH, Loaded, TimeAxis
from hearsay.reports.files import chosen, kept_truth, open_results
from protocols.arrays import Floats
from protocols.errors import ResultsError, SurveyError
from protocols.scheme import Scheme
from protocols.survey import DAY, Survey, Unit
from views.forecasts import Cell, cells, observed_series
from views.reading import Results

Measure = Literal["people", "share", "visitors", "new", "returning"]


def published_series(
    survey: str | None,
    data: Path | None,
    kafka: str | None,
    measure: Measure = "people",
    attribute: str | None = None,
    value: str | None = None,
    window: int = 1,
    unit: Unit | None = None,
) -> tuple[str, Loaded]:
    """What a survey is called, and its series: of people or shares by value, or of visitors; with the truth of a run.

    `window`: different visitors of so many periods, ending with each; only of all visitors.
    `unit`: the visitors of calendar units, or the new or returning ones, a row for each unit that is over.
    """
    with open_results(survey, data, kafka) as (results, root):
        found = chosen(results, survey)
        if unit is not None:
            loaded = _units(results, found, measure, unit)
        elif window > 1 or measure in ("new", "returning"):
            loaded = _by_period(found, _visitors(results, found, measure, window))
        else:
            loaded = _by_period(found, _cells(results, found, measure, attribute, value), shares=measure == "share")
    if root is not None and (kept := kept_truth(root, found.id)):
        loaded.truth.update(_truth(found, loaded, measure, kept))
    return found.title or found.id, loaded


def _by_period(survey: Survey, found: list[Series], shares: bool = False) -> Loaded:
    """Series with a row for each period."""
    series = [replace(one, clock=survey.calendar.on_the_wall) for one in found]
    first, names = series[0].first, {one.name for one in series}
    begin = survey.bounds(first)[0].replace(tzinfo=None)
    attributes = [[str(Cell("values", a.name, v)) for v in a.values] for a in survey.asked] if shares else []
    wholes = [whole for whole in attributes if names.issuperset(whole)]
    return Loaded(series, TimeAxis(begin, survey.period, (survey.calendar, first)), wholes=wholes)


def _truth(survey: Survey, loaded: Loaded, measure: Measure, kept: Mapping[Window, WindowTruth]) -> dict[str, Floats]:
    """What a simulation knows about the series of its survey: people (or shares) with each value in every period."""
    scheme = Scheme(survey)
    known, first = cells(scheme), loaded.series[0].first
    true = np.full((len(known), len(loaded.series[0])), np.nan)
    for place in range(true.shape[1]):
        if (found := kept.get(Window(first + place, first + place))) is not None:
            true[:, place] = _people(scheme, found)
    if measure == "share":
        true /= np.where(true[0] > 0, true[0], np.nan)
    return {str(cell): true[row] for row, cell in enumerate(known)}


def _people(scheme: Scheme, truth: WindowTruth) -> list[int]:
    """In the order of `cells`."""
    found = [truth.visitors]
    for question in scheme.questions:
        people = dict(zip(question.items.values, truth.people[question.name].tolist(), strict=True))
        found += people.values() if not question.attribute.placed else ()
        found += [sum(people[value] for value in members) for members in question.attribute.groups.values()]
    return found


def _cells(
    results: Results, survey: Survey, measure: Measure, attribute: str | None, value: str | None
) -> list[Series]:
    scheme = Scheme(survey)
    first, (values, fresh, memo) = observed_series(scheme, results.histograms(survey.id))
    if not values.shape[1]:
        raise ResultsError(
            f"no final result of survey {survey.id!r} is published", "a period becomes final when it is closed"
        )
    known = cells(scheme)
    places = [place for place, cell in enumerate(known) if _wanted(cell, measure, attribute, value)]
    if not places:
        some = ", ".join(
            sorted({cell.value for cell in known if attribute in (None, cell.attribute) and cell.attribute})
        )
        if attribute is not None:
            survey.attribute(attribute)  # raises if there is none
        raise SurveyError(f"survey {survey.id!r} has no value {value!r}", f"its values: {some}")
    scale = values[0] if measure == "share" else np.ones_like(values[0])
    scale = np.where(scale > 0, scale, np.nan)
    return [Series(str(known[p]), values[p] / scale, fresh[p] / scale**2, memo[p] / scale**2, first) for p in places]


def _wanted(cell: Cell, measure: Measure, attribute: str | None, value: str | None) -> bool:
    if measure == "visitors" or not cell.attribute:
        return not cell.attribute and measure in ("people", "visitors") and attribute is None and value is None
    return attribute in (None, cell.attribute) and value in (None, cell.value)


def _visitors(results: Results, survey: Survey, measure: Measure, window: int) -> list[Series]:
    """Visitors of windows, or new and returning ones of single periods, from mobility reports."""
    if window > survey.horizon:
        raise SurveyError(
            f"survey {survey.id!r} has windows of at most {survey.horizon} periods", "choose a shorter one"
        )
    found = dict[int, Quantity | None]()
    for report in results.mobility(survey.id):
        if window > 1:
            found |= {cell.last: cell.visitors for cell in report.triangle if cell.last - cell.first + 1 == window}
        else:
            found |= {w.last: getattr(w, measure) for w in report.windows if w.kind == "period"}
    if not found:
        raise ResultsError(f"no window of {window} periods of survey {survey.id!r} is published", "collect for longer")
    name = f"visitors of {window} periods" if window > 1 else f"{measure} visitors"
    return [_series(name, found)]


def _units(results: Results, survey: Survey, measure: Measure, unit: Unit) -> Loaded:
    """Visitors of calendar units that are over; without the first one, of which the survey may have only a part."""
    reports = results.mobility(survey.id)
    over = {w.first: w for report in reports for w in report.windows if w.kind == unit and w.first > 0}
    if unit not in survey.units or not over:
        raise ResultsError(f"no whole {unit} of survey {survey.id!r} is published", "count it (visitors), for longer")
    part = measure if measure in ("new", "returning") else "visitors"
    found = {place: getattr(over[first], part) for place, first in enumerate(sorted(over))}
    step = {"day": DAY, "week": 7 * DAY, "month": MONTH}[unit]
    begin = survey.bounds(min(over))[0].replace(tzinfo=None)
    return Loaded([_series(f"{part} by {unit}", found)], TimeAxis(begin, step))


def _series(name: str, found: Mapping[int, Quantity | None]) -> Series:
    first = min(found)
    values, fresh = np.full((2, max(found) - first + 1), np.nan)
    for period, quantity in found.items():
        if quantity is not None and quantity.value is not None:
            values[period - first], fresh[period - first] = quantity.value, (quantity.error or 0.0) ** 2
    return Series(name, values, np.nan_to_num(fresh), np.zeros(len(values)), first)
