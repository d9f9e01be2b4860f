"""Combining the published reports of many periods, and adding what is known only later."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np

from analytics.mobility.model import AttributeReport, MobilityReport, WindowReport
from analytics.windows.calendar import Window
from protocols.arrays import Whole
from protocols.survey import Calendar


@dataclass(frozen=True, eq=False)
class WindowTruth:
    """What a simulation knows about a window: its visitors, and how many of them have each value."""

    visitors: int
    people: Mapping[str, Whole] = field(default_factory=dict)


def combine(reports: Sequence[MobilityReport]) -> MobilityReport:
    """The reports of one survey as one: all their windows, as they were published."""
    windows = {(w.first, w.last): w for report in reports for w in report.windows}
    triangle = {(cell.first, cell.last): cell for report in reports for cell in report.triangle}
    return reports[-1].model_copy(
        update={
            "windows": tuple(sorted(windows.values(), key=lambda w: (w.last - w.first, w.first))),
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
        shortfall = late + sum(
            reports for first, last, reports in lost if first <= window.last and window.first <= last
        )
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
        attributes = tuple(_attribute_with_truth(attribute, known) for attribute in window.attributes)
        return window.model_copy(update={"truth": known.visitors, "attributes": attributes})

    return report.model_copy(update={"windows": tuple(map(compared, report.windows))})


def _attribute_with_truth(attribute: AttributeReport, truth: WindowTruth) -> AttributeReport:
    if attribute.name not in truth.people or attribute.values is None:
        return attribute
    people = truth.people[attribute.name].astype(np.float64)
    return attribute.model_copy(update={"values": attribute.values.model_copy(update={"truth": people})})


_DAY_ZERO = date(1970, 1, 1)


def window_ends(calendar: Calendar, first: int, last: int) -> tuple[date, date]:
    """The first and the last day of a window of whole local days; otherwise when its first and last periods begin."""
    if calendar.begins_day(first) and calendar.begins_day(last + 1):
        days = calendar.day(first), calendar.day(last + 1) - 1
        return _DAY_ZERO + timedelta(days[0]), _DAY_ZERO + timedelta(days[1])
    return calendar.local(calendar.begin(first)), calendar.local(calendar.begin(last))
