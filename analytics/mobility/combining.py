"""Combining the published reports of many periods, and adding what is known only later.

Changes in percent between published windows, and against a baseline, are computed by readers of the reports: the window
to compare with may lie further back than one report's horizon, and the baseline is the reader's choice. Only published
numbers are compared, so a change reveals nothing about a suppressed window.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from analytics.estimation.estimates import Estimates, ratio
from analytics.mobility.model import (
    PARTS,
    VISITS,
    AttributeReport,
    Change,
    Changes,
    Kind,
    MobilityReport,
    Quantities,
    WindowReport,
    measured,
    quantities,
    quantity,
)
from analytics.windows.calendar import Window, comparable, same_phase
from protocols.arrays import Whole

KINDS = get_args(Kind)


@dataclass(frozen=True, eq=False)
class WindowTruth:
    """What a simulation knows about a window: its visitors, and how many of them have each value."""

    visitors: int
    people: Mapping[str, Whole] = field(default_factory=dict)


def combine(reports: Sequence[MobilityReport]) -> MobilityReport:
    """The reports of one survey as one: all their windows, as they were published.

    Of a calendar unit the newest window is kept; of all who ever came, one for each period: in the first unit, its own.
    """
    windows = {(w.first, w.last): w for report in reports for w in report.windows}
    through = {(w.unit, w.first): w.last for w in sorted(windows.values(), key=lambda w: w.last)}
    newest = {p: w for p, w in windows.items() if not w.open or w.kind == "ever" or w.last == through[w.unit, w.first]}
    since = min((w.first for w in newest.values()), default=0)
    counts_ever = any(w.new is not None or w.kind == "ever" for w in windows.values())
    older = [w for p, w in windows.items() if p not in newest and w.first == since and counts_ever]
    kept = [*newest.values(), *(w.model_copy(update={"kind": "ever"}) for w in older)]
    triangle = {(cell.first, cell.last): cell for report in reports for cell in report.triangle}
    return reports[-1].model_copy(
        update={
            "windows": tuple(sorted(kept, key=lambda w: (KINDS.index(w.kind), w.first, w.last))),
            "triangle": tuple(triangle[place] for place in sorted(triangle)),
        }
    )


def with_shortfall(
    report: MobilityReport, lates: Mapping[int, int], lost: Sequence[tuple[int, int, int]] = ()
) -> MobilityReport:
    """The report with the shortfall of each window: the late reports by period, and those lost at most.

    What is lost is a first and a last period, and how many reports of them together.

    Where presence has noise, nobody publishes them by period, and no shortfall is known.
    """
    if report.presence == "noised":
        return report

    def lacking(window: WindowReport) -> WindowReport:
        late = sum(lates.get(period, 0) for period in range(window.first, window.last + 1))
        gone = sum(reports for first, last, reports in lost if first <= window.last and window.first <= last)
        shortfall = max(late + gone, window.shortfall or 0)
        return window if window.suppressed else window.model_copy(update={"shortfall": shortfall})

    return report.model_copy(update={"windows": tuple(map(lacking, report.windows))})


def with_lost_presence(report: MobilityReport, losses: Collection[int]) -> MobilityReport:
    """The report with a mark on windows in which devices may be counted twice.

    In each of the periods `losses` the store had lost its presence records. Windows that begin before such a period and
    include it are marked.
    """

    def marked(window: WindowReport) -> WindowReport:
        affected = any(window.first < loss <= window.last for loss in losses)
        return window.model_copy(update={"presence_lost": True}) if affected else window

    return report.model_copy(update={"windows": tuple(map(marked, report.windows))})


def with_truth(report: MobilityReport, truth: Mapping[Window, WindowTruth]) -> MobilityReport:
    """The report with the truth that a simulation knows beside the estimates."""

    def compared(window: WindowReport) -> WindowReport:
        known = truth.get(Window(window.first, window.last))
        if known is None or window.suppressed:
            return window
        people = {name: {"truth": of_values.astype(np.float64)} for name, of_values in known.people.items()}
        attributes = tuple(
            part if part.counted == VISITS else _with_values(part, people.get(part.name, {}))
            for part in window.attributes
        )
        return window.model_copy(update={"truth": known.visitors, "attributes": attributes})

    return report.model_copy(update={"windows": tuple(map(compared, report.windows))})


def _with_values(attribute: AttributeReport, more: Mapping[str, Any]) -> AttributeReport:
    """The attribute with more fields of its values, if they are known."""
    if attribute.values is None:
        return attribute
    return attribute.model_copy(update={"values": attribute.values.model_copy(update=more)})


def with_nowcasts(report: MobilityReport, nowcasts: Mapping[tuple[int, str, str], Quantities]) -> MobilityReport:
    """The report with the nowcasts of single periods: by period, attribute, and `values` or `groups`."""

    def with_own(part: AttributeReport, period: int) -> AttributeReport:
        shares = {"values": part.values, "groups": part.groups}
        known = {kind: {"nowcast": nowcasts.get((period, part.name, kind))} for kind in shares}
        return part.model_copy(update={k: one and one.model_copy(update=known[k]) for k, one in shares.items()})

    windows = []
    for window in report.windows:
        parts = (with_own(part, window.first) if window.first == window.last else part for part in window.attributes)
        windows.append(window.model_copy(update={"attributes": tuple(parts)}))
    return report.model_copy(update={"windows": tuple(windows)})


def with_changes(report: MobilityReport, baseline: range | None = None) -> MobilityReport:
    """The report with every change between its windows; `baseline` are the periods that count as normal."""
    published = {Window(w.first, w.last): w for w in report.windows if not w.suppressed}
    if not published:
        return report
    known = range(min(w.first for w in published), max(w.last for w in published) + 1)
    calendar = report.calendar
    visitors = {window: measured(shown.visitors) for window, shown in published.items() if shown.visitors}
    people = {asked.name: _people(published, asked.name) for asked in report.attributes}

    def changes(window: Window, numbers: Mapping[Window, Estimates]) -> dict[str, Change | Changes | None]:
        """The fields `change` and `baseline` of the numbers of a window; `numbers` has those of every window.

        They are against the previous comparable window, and against the median of the windows at the same time of the
        week (or of the day) within the baseline. A window is not compared with itself, nor with what it shares periods
        with.
        """
        found: dict[str, Change | Changes | None] = {"change": None, "baseline": None}
        if window not in numbers:
            return found
        previous = comparable(window, calendar, known)
        if previous is not None and previous[0] in numbers:
            found["change"] = _changes(numbers[window], numbers[previous[0]], *previous)
        alike = () if baseline is None else same_phase(window, calendar, baseline)
        normal = [numbers[other] for other in alike if other in numbers and not other.overlaps(window)]
        if baseline is not None and normal:
            words = f"the median of {len(normal)} comparable windows" if len(normal) > 1 else "the comparable window"
            found["baseline"] = _changes(numbers[window], _median(normal), Window(baseline[0], baseline[-1]), words)
        return found

    def changed(shown: WindowReport) -> WindowReport:
        window = Window(shown.first, shown.last)
        if window not in visitors:
            return shown
        attributes = tuple(_with_values(part, changes(window, people[part.name])) for part in shown.attributes)
        return shown.model_copy(update={**changes(window, visitors), "attributes": attributes})

    return report.model_copy(update={"windows": tuple(map(changed, report.windows))})


def _people(published: Mapping[Window, WindowReport], name: str) -> dict[Window, Estimates]:
    """The people by value of one attribute, in every window that has answers."""
    shares = [
        (window, shown.counted_by(part), part.values)
        for window, shown in published.items()
        for part in shown.attributes
        if part.name == name
    ]
    return {window: measured(values.people(visitors)) for window, visitors, values in shares if values and visitors}


def _median(parts: Sequence[Estimates]) -> Estimates:
    """The median, with the mean of the errors and of the distances to the ends of the intervals.

    That assumes that the parts share their noise: people who keep their memos nearly do.
    """
    value, error, low, high = (np.array([getattr(part, name) for part in parts]) for name in PARTS)
    middle = np.median(value, axis=0)
    down, up = (value - low).mean(axis=0), (high - value).mean(axis=0)
    return Estimates(middle, error.mean(axis=0), middle - down, middle + up)


def _changes(now: Estimates, then: Estimates, window: Window, words: str) -> Change | Changes:
    """The change of a number, or the changes of a row of numbers."""
    by, compared = ratio(now, then), {"against": words, "first": window.first, "last": window.last}
    percent = Estimates((by.value - 1) * 100, by.error * 100, (by.low - 1) * 100, (by.high - 1) * 100)
    if percent.value.ndim:
        return Changes(percent=quantities(percent), **compared)
    return Change(percent=quantity(percent), **compared)
