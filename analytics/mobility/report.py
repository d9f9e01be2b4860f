"""The mobility report of a period, made from counts."""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.estimates import CONFIDENCE
from analytics.mobility.answers import Answers
from analytics.mobility.attributes import asked_attribute, attribute_report
from analytics.mobility.count_history import CountHistory
from analytics.mobility.model import Gaps, MobilityReport, UniqueVisitors, WindowReport, each_quantity, quantity
from analytics.mobility.publication import Publication
from analytics.windows.calendar import Window
from analytics.windows.units import UnitSum
from protocols.privacy import PresenceNoise
from protocols.survey import Survey

PARTED = "new", "returning"
NOTES: Mapping[str, str] = json.loads((resources.files(__package__) / "notes.json").read_text("utf-8"))


def mobility_report(history: CountHistory, estimated: Mapping[str, Answers] | None = None) -> MobilityReport:
    """The report of a period: all windows that end with it, from the counts of the periods they cover.

    The period is the last of the history. Nothing in the report depends on later periods, on the reports of other
    periods, or on what is known outside the counts: `analytics.mobility.combining` adds that. `estimated`
    are the answers of the period by attribute, if they were estimated before.
    """
    survey, noise, period = history.scheme.survey, history.scheme.presence, history.periods[-1]
    known = {(name, Window(period, period)): answers for name, answers in (estimated or {}).items()}
    publication = Publication(history, known)
    return MobilityReport(
        survey=survey.id,
        title=survey.title or survey.id,
        fingerprint=history.scheme.fingerprint,
        start=survey.start,
        period_seconds=int(survey.period.total_seconds()),
        time_zone=survey.time_zone,
        horizon=survey.horizon,
        minimum=survey.minimum,
        confidence=CONFIDENCE,
        presence="exact" if noise is None else "noised",
        presence_scale=None if noise is None else noise.reports_scale,
        notes=_notes(survey, noise),
        attributes=tuple(map(asked_attribute, history.scheme.questions)),
        windows=tuple(_window(publication, window) for window in publication.kinds if window.last == period),
        triangle=tuple(_cell(publication, window) for window in publication.triangle if window.last == period),
    )


def _window(publication: Publication, window: Window) -> WindowReport:
    """A calendar unit has its answers once it is over, and so have all who ever came."""
    history, survey, unit = publication.history, publication.survey, publication.units.get(window)
    header = WindowReport(
        first=window.first,
        last=window.last,
        begin=survey.bounds(window.first)[0],
        end=survey.bounds(window.last)[1],
        kind=publication.kinds[window],
        suppressed=publication.suppression(window),
    )
    if header.suppressed:
        return header
    published: dict[str, Any] = {} if unit is not None else _new_and_returning(history, window)
    published |= _parts(history, unit or history.newest)
    published["visitors"] = quantity(history.visitors(window) if unit is None else history.of_unit(unit)[0])
    if history.agreed is not None:
        unbiased = (
            history.unbiased_visitors(window)
            if unit is None
            else history.unbiased(sum(unit.n[kind] for kind in history.scheme.kinds), unit.cells[0])
        )
        published["unbiased_visitors"] = quantity(unbiased)
    elif unit is not None:
        published["shortfall"] = unit.late
    if (history.by_gap or (unit is None and window.length == 1)) and not header.kind.endswith(" so far"):
        published["attributes"] = tuple(attribute_report(publication, q, window) for q in history.scheme.questions)
    return header.model_copy(update=published)


def _parts(history: CountHistory, found: UnitSum | None) -> dict[str, Any]:
    """New and returning visitors of calendar units, where both are known."""
    if found is None or "ever" not in history.scheme.survey.units or not found.new:
        return {}
    (visitors, new), (cells, of_new) = history.of_unit(found).value, found.cells
    plain = [sum(part[kind] for kind in history.scheme.kinds) for part in (found.n, found.new)]
    return _parted(history, [new, visitors - new], [plain[1], plain[0] - plain[1]], [of_new, cells - of_new])


def _parted(history: CountHistory, agreed: ArrayLike, unbiased: ArrayLike, cells: ArrayLike) -> dict[str, Any]:
    """New and returning visitors as they are published, from both numbers of each kind."""
    published = dict(zip(PARTED, each_quantity(history.counted(agreed, unbiased, cells)), strict=True))
    if history.agreed is not None:
        sums = each_quantity(history.unbiased(unbiased, cells))
        published |= {f"unbiased_{name}": one for name, one in zip(PARTED, sums, strict=True)}
    return published


def _cell(publication: Publication, window: Window) -> UniqueVisitors:
    visitors = None if publication.suppression(window) else quantity(publication.history.visitors(window))
    return UniqueVisitors(first=window.first, last=window.last, visitors=visitors)


def _new_and_returning(history: CountHistory, window: Window) -> dict[str, Any]:
    """New and returning visitors, and the gaps of the returning ones; nothing where they are not known."""
    counts = history.gap_counts(window)
    ranges = _gap_ranges(history, window)
    if len(counts) == 1 or ranges is None:
        return {}  # with a horizon of one period, nobody is known to return
    cells = np.minimum(np.arange(1, len(counts) + 1), window.length)  # that are added up for the visitors of each gap
    running = [np.cumsum([0, *of_gaps]) for of_gaps in (counts, history.gap_counts(window, unbiased=True), cells)]

    def sums(ranges: Sequence[tuple[int, int]]) -> list[NDArray[np.int64]]:
        low, high = np.array(ranges, dtype=np.intp).reshape(-1, 2).T
        return [sums[high] - sums[low - 1] for sums in running]

    gaps = tuple(
        Gaps(shortest=low, longest=high, visitors=visitors)
        for (low, high), visitors in zip(ranges, each_quantity(history.counted(*sums(ranges))), strict=True)
    )
    return {**_parted(history, *sums([(len(counts), len(counts)), (1, len(counts) - 1)])), "gaps": gaps}


def _gap_ranges(history: CountHistory, window: Window) -> Sequence[tuple[int, int]] | None:
    """The gaps that are published together; None if neither new nor returning visitors are."""
    if history.agreed is None:
        return history.gap_ranges(window)
    counts, minimum = history.gap_counts(window), history.scheme.survey.minimum
    if any(0 < part < minimum for part in (counts[-1], counts[:-1].sum())):
        return None
    return merged_gaps(counts[:-1].tolist(), minimum)


def _notes(survey: Survey, noise: PresenceNoise | None) -> tuple[str, ...]:
    """How to read the numbers, the most important note first."""
    said = {
        "exact": noise is None,
        "noised": noise is not None,
        "shares": True,
        "central": survey.central is not None,
        "first value": survey.central is None and noise is None,
        "one_in": survey.one_in > 1,
        "nowcasts": survey.nowcasts,
        "horizon": survey.horizon > 1,
        "visitors": survey.visitors is not None,
        "minimum": survey.minimum > 0,
    }
    return tuple(NOTES[name].format(survey=survey, noise=noise) for name, applies in said.items() if applies)


def merged_gaps(counts: Sequence[int], minimum: int) -> list[tuple[int, int]]:
    """Ranges of gaps (shortest, longest) that cover gaps 1, 2, ..., each with no visitors or at least `minimum`.

    `counts[gap - 1]` are visitors. A rare gap is merged with longer ones; what is left over joins the last range.

    >>> merged_gaps([40, 3, 9, 0, 25, 2], minimum=10)
    [(1, 1), (2, 3), (4, 4), (5, 6)]
    >>> merged_gaps([3, 4], minimum=10)
    []
    """
    ranges: list[tuple[int, int]] = []
    begin, gathered = 1, 0
    for gap, count in enumerate(counts, start=1):
        gathered += count
        if gathered == 0 or gathered >= minimum:
            ranges.append((begin, gap))
            begin, gathered = gap + 1, 0
    if gathered:
        while ranges and sum(counts[ranges[-1][0] - 1 : ranges[-1][1]]) == 0:
            ranges.pop()
        if ranges:
            ranges[-1] = (ranges[-1][0], len(counts))
    return ranges
