"""The numbers and labels of the page, in a compact form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.mobility.model import (
    AskedAttribute,
    AttributeReport,
    Change,
    MobilityReport,
    Quantities,
    Quantity,
    Shares,
    WindowReport,
)
from analytics.mobility.output.flows import flows
from analytics.mobility.output.labels import label
from protocols.survey import micros

Json = dict[str, Any]
MOST_VALUES = 200
"""How many values of an attribute a window shows: the most frequent ones. The tables have all."""


def page_data(report: MobilityReport) -> Json:
    """Numbers and labels for `page.js`."""
    periods = [window for window in report.windows if window.first == window.last]
    return {
        "title": report.title,
        "survey": report.survey,
        "fingerprint": report.fingerprint,
        "span": _span(report),
        "presence": report.presence,
        "scale": report.presence_scale,
        "horizon": report.horizon,
        "minimum": report.minimum,
        "confidence": report.confidence,
        "periodSeconds": report.period_seconds,
        "windows": [_window(window, report) for window in report.windows],
        "periods": [report.windows.index(window) for window in periods],
        "chosen": _shown_first(report.windows),
        "triangle": _triangle(report),
    }


def _window(window: WindowReport, report: MobilityReport) -> Json:
    return {
        "label": label(report.calendar, window.first, window.last),
        "begin": window.begin.isoformat()[:19],
        "kind": window.kind,
        "suppressed": window.suppressed,
        "lost": window.presence_lost,
        "visitors": _numbers([window.visitors]),
        "truth": window.truth,
        "new": _numbers([window.new]),
        "returning": _numbers([window.returning]),
        "gaps": {
            "label": [f"{g.shortest}" if g.shortest == g.longest else f"{g.shortest}–{g.longest}" for g in window.gaps],
            **_numbers([g.visitors for g in window.gaps]),
        },
        "change": _change(window.change),
        "baseline": _change(window.baseline),
        "shortfall": window.shortfall,
        "attributes": [_attribute(report.asked(part.name), part, window.visitors) for part in window.attributes],
    }


def _attribute(asked: AskedAttribute, attribute: AttributeReport, visitors: Quantity | None) -> Json:
    return {
        "name": attribute.name,
        "role": asked.role,
        "mechanism": asked.mechanism,
        "counted": attribute.counted,
        "answers": attribute.n,
        "suppressed": attribute.suppressed,
        "values": _rows(asked.values, attribute.values, visitors),
        "groups": _rows(asked.groups, attribute.groups, visitors),
        "ranking": attribute.ranking
        and {
            "probability": attribute.ranking.probability,
            "places": [[p.value, _short(p.people.value), p.probability] for p in attribute.ranking.places],
        },
        "dwell": attribute.dwell and attribute.dwell.model_dump(),
        "flows": _flows(asked, attribute, visitors),
    }


def _rows(names: Sequence[str], shares: Shares | None, visitors: Quantity | None) -> Json:
    if shares is None or visitors is None:
        return {"label": [], "of": 0}
    people = shares.people(visitors)
    shown = _most_frequent(people)
    return {
        "label": [names[place] for place in shown],
        "of": len(names),
        **_columns(people, shown),
        "share": _column(shares.share.value, shown, 5),
        "consistent": _column(shares.consistent, shown, 5),
        "smoothed": shares.smoothed and _columns(shares.smoothed, shown, 5),
        "truth": _column(shares.truth, shown),
    }


def _flows(asked: AskedAttribute, attribute: AttributeReport, visitors: Quantity | None) -> list[Any]:
    found = flows(asked, attribute, visitors)
    if found is None:
        return []
    shown = _most_frequent(found.people)
    people = zip(*_columns(found.people, shown).values(), strict=True)
    return [
        [found.origins[place], found.destinations[place], *([number] for number in numbers)]
        for place, numbers in zip(shown, people, strict=True)
    ]


def _most_frequent(people: Quantities) -> NDArray[np.intp]:
    """The places of the most frequent values, in their order."""
    return np.sort(np.argsort(-people.value, kind="stable")[:MOST_VALUES])


def _columns(numbers: Quantities, shown: NDArray[np.intp], digits: int = 1) -> Json:
    return {part: _column(getattr(numbers, part), shown, digits) for part in ("value", "low", "high")}


def _column(numbers: NDArray[np.float64] | None, shown: NDArray[np.intp], digits: int = 1) -> list[float | None] | None:
    if numbers is None:
        return None
    return [None if np.isnan(number) else round(number, digits) for number in numbers[shown].tolist()]


def _numbers(parts: Sequence[Quantity | None], digits: int = 1) -> Json:
    return {
        "value": [_short(part.value, digits) if part else None for part in parts],
        "low": [_short(part.low, digits) if part else None for part in parts],
        "high": [_short(part.high, digits) if part else None for part in parts],
    }


def _change(change: Change | None) -> Json | None:
    if change is None or change.percent.value is None:
        return None
    return {"against": change.against, **_numbers([change.percent])}


def _triangle(report: MobilityReport) -> Json:
    """The triangle's cells by the place of their first and last step.

    A step is the shortest run with a given end. Runs that begin before the first step are left out: they belong to the
    first reports that are still kept, and begin in periods whose own reports are gone.
    """
    calendar = report.calendar
    steps = {last: first for first, last in sorted((cell.first, cell.last) for cell in report.triangle)}
    lasts = sorted(steps)
    firsts = [steps[last] for last in lasts]
    return {
        "steps": [label(calendar, steps[last], last) for last in lasts],
        "unit": "days" if all(calendar.day(last + 1) == calendar.day(steps[last]) + 1 for last in lasts) else "periods",
        "cells": [
            [firsts.index(cell.first), lasts.index(cell.last), _short(cell.visitors.value) if cell.visitors else None]
            for cell in report.triangle
            if cell.first in firsts
        ],
    }


def _span(report: MobilityReport) -> str:
    """The first and the last day of all windows."""
    if not report.windows:
        return ""
    begin, end = min(window.begin for window in report.windows), max(window.end for window in report.windows)
    last = report.calendar.local(micros(end) - 1)
    return f"{begin.day} {begin:%B %Y} – {last.day} {last:%B %Y}"


def _shown_first(windows: Sequence[WindowReport]) -> int:
    """The place of the window that the page shows first: the longest published one with answers, the latest."""
    published = [place for place, window in enumerate(windows) if not window.suppressed]
    published = [place for place in published if windows[place].attributes] or published
    return max(published, key=lambda place: (windows[place].last - windows[place].first, place), default=0)


def _short(number: float | None, digits: int = 1) -> float | None:
    return None if number is None else round(number, digits)
