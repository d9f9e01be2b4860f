"""The mobility report of a period, made from counts by gap or flags, or from the released numbers of its windows."""

import json
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, cast

import numpy as np

from analytics.estimation.estimates import CONFIDENCE, Estimates, exact
from analytics.mobility.answers import Answers
from analytics.mobility.attributes import asked_attribute, attribute_report
from analytics.mobility.count_history import CountHistory
from analytics.mobility.model import (
    VISITS,
    AttributeReport,
    Counted,
    Gaps,
    Kind,
    MobilityReport,
    UniqueVisitors,
    WindowReport,
    each_quantity,
    quantity,
)
from analytics.mobility.publication import Publication
from analytics.mobility.released_windows import ReleasedWindows
from analytics.windows import Window, WindowNumbers, WindowSum
from protocols.scheme import Scheme

NOTES: Mapping[str, str] = json.loads((resources.files(__package__) / "notes.json").read_text("utf-8"))
OF_RELEASED = 9
"""The version of reports with `publish_from` or `presence_epsilon`: they have windows that earlier ones do not know."""


def mobility_report(history: CountHistory, estimated: Mapping[str, Answers] | None = None) -> MobilityReport:
    """The report of a period: all windows that end with it, from the counts of the periods they cover.

    The period is the last of the history. Nothing in the report depends on later periods, on the reports of other
    periods, or on what is known outside the counts: `analytics.mobility.combining` adds that. `estimated`
    are the answers of the period by attribute, if they were estimated before.
    """
    period = history.periods[-1]
    known = {(name, Window(period, period)): answers for name, answers in (estimated or {}).items()}
    publication = Publication(history, known)
    windows = (_window(publication, window) for window in publication.kinds if window.last == period)
    runs = (window for window in publication.triangle if window.last == period)
    triangle = (UniqueVisitors(first=run.first, last=run.last, visitors=_visitors(publication, run)) for run in runs)
    return _report(history.scheme, windows, triangle)


def released_report(released: ReleasedWindows) -> MobilityReport:
    """The report of a period where windows are released, and not counts by gap or flags."""
    found: dict[int, WindowReport] = {}
    by_first = {window.first: window for window in released.windows}
    for window in released.windows:
        if window.kind != "run":
            found.setdefault(window.first, _released_window(released, window))
    triangle = tuple(_run(released, by_first[run.first]) for run in released.triangle if run.first in by_first)
    report = _report(released.scheme, found.values(), triangle)
    return report.model_copy(update={"schema_version": OF_RELEASED})


def _report(scheme: Scheme, windows: Iterable[WindowReport], triangle: Iterable[UniqueVisitors]) -> MobilityReport:
    survey = scheme.survey
    return MobilityReport(
        survey=survey.id,
        title=survey.title or survey.id,
        fingerprint=scheme.fingerprint,
        start=survey.start,
        period_seconds=int(survey.period.total_seconds()),
        time_zone=survey.time_zone,
        horizon=survey.horizon,
        minimum=survey.threshold,
        confidence=CONFIDENCE,
        presence="exact" if scheme.presence is None else "noised",
        presence_scale=None,
        notes=_notes(scheme),
        attributes=tuple(map(asked_attribute, scheme.questions)),
        windows=tuple(windows),
        triangle=tuple(triangle),
    )


def _window(publication: Publication, window: Window) -> WindowReport:
    """A calendar unit has its answers once it is over, and so have all who ever came."""
    history, unit = publication.history, publication.units.get(window)
    header = _header(history.scheme, window, publication.kinds[window])
    published: dict[str, Any] = {} if unit is not None else _new_and_returning(history, window)
    published |= _parts(history, unit or history.newest)
    published["visitors"] = _visitors(publication, window)
    if unit is not None:
        published["shortfall"] = unit.late
    if (history.by_gap or (unit is None and window.length == 1)) and not header.kind.endswith(" so far"):
        counted: Counted = "value in the period" if window.length == 1 else "first value in the window"
        answers = {question.name: publication.answers(question.name, window) for question in history.scheme.questions}
        published["attributes"] = tuple(
            attribute_report(question, answers, counted) for question in history.scheme.questions
        )
    return header.model_copy(update=published)


def _header(scheme: Scheme, window: Window, kind: str) -> WindowReport:
    return WindowReport(
        first=window.first,
        last=window.last,
        begin=scheme.survey.bounds(window.first)[0],
        end=scheme.survey.bounds(window.last)[1],
        kind=cast(Kind, kind),
        suppressed=None,
    )


def _visitors(publication: Publication, window: Window) -> Any:
    return quantity(publication.visitors(window))


def _parts(history: CountHistory, found: WindowSum | None) -> dict[str, Any]:
    """New and returning visitors of calendar units, where both are known."""
    if found is None or "ever" not in history.scheme.survey.units or not found.new:
        return {}
    new = found.new_devices(history.scheme.kinds)
    returning = found.devices(history.scheme.kinds) - new
    return {"new": _exactly(new), "returning": _exactly(returning)}


def _new_and_returning(history: CountHistory, window: Window) -> dict[str, Any]:
    """New and returning visitors, and the gaps of the returning ones; nothing where they are not known."""
    counts = history.gap_counts(window)
    if len(counts) == 1:
        return {}  # with a horizon of one period, nobody is known to return
    returning = each_quantity(exact(counts[:-1]))
    gaps = tuple(Gaps(shortest=gap, longest=gap, visitors=found) for gap, found in enumerate(returning, start=1))
    return {"new": _exactly(counts[-1]), "returning": _exactly(counts[:-1].sum()), "gaps": gaps}


def _exactly(number: int) -> Any:
    return quantity(exact(np.asarray(number)))


def _released_window(released: ReleasedWindows, window: WindowNumbers) -> WindowReport:
    scheme = released.scheme
    kind = "rolling" if released.is_rolling(window) else window.kind
    header = _header(scheme, Window(window.first, released.period), kind)
    numbers = {name: _published(released.number(window, name)) for name in ("visitors", "new", "returning")}
    published: dict[str, Any] = {
        **numbers,
        "suppressed": "minimum" if numbers["visitors"] is None and scheme.presence is None else None,
        "visits": _published(released.visits(window)),
        "shortfall": window.late if header.kind != "period" else None,
    }
    answers = released.answers(window)
    if answers:
        counted = released.counted(window)
        found = (attribute_report(one, answers, counted) for one in scheme.questions)
        published["attributes"] = tuple(_with_periods(part, window) for part in found)
    return header.model_copy(update=published)


def _with_periods(part: AttributeReport, window: WindowNumbers) -> AttributeReport:
    """The same, with the number of periods whose answers it has, where it has those of all reports."""
    table = window.visits.get(part.name) if part.counted == VISITS else None
    return part if table is None else part.model_copy(update={"periods": table.periods})


def _run(released: ReleasedWindows, window: WindowNumbers) -> UniqueVisitors:
    visitors = _published(released.number(window, "visitors"))
    return UniqueVisitors(first=window.first, last=released.period, visitors=visitors)


def _published(number: Estimates | None) -> Any:
    return None if number is None else quantity(number)


def _notes(scheme: Scheme) -> tuple[str, ...]:
    """How to read the numbers, the most important note first."""
    survey, noise = scheme.survey, scheme.presence
    said = {
        "exact": noise is None and survey.threshold == 0,
        "publish_from": survey.threshold > 0,
        "noised": noise is not None,
        "shares": True,
        "central": survey.central is not None and not survey.releases_windows,
        "first value": survey.central is None and noise is None and survey.threshold == 0,
        "visits": noise is not None or survey.threshold > 0,
        "one_in": survey.one_in > 1,
        "nowcasts": survey.nowcasts,
        "horizon": survey.horizon > 1,
        "visitors": survey.visitors is not None and noise is None,
        "released visitors": survey.visitors is not None and noise is not None,
    }
    return tuple(NOTES[name].format(survey=survey, noise=noise) for name, applies in said.items() if applies)
