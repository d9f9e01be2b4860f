"""Changes in percent, against the previous comparable window and against a baseline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from analytics.estimation.estimates import Estimates
from analytics.estimation.ratios import ratio
from analytics.mobility.model import (
    AttributeReport,
    Change,
    MobilityReport,
    Quantity,
    WindowReport,
    measured,
    quantities,
)
from analytics.windows.calendar import Window, comparable, same_phase

Measure = Callable[[Window], Estimates]


@dataclass(frozen=True)
class Changes:
    """Comparisons among windows that are published: a change must not tell what a suppressed window keeps silent."""

    period: timedelta
    known: range
    baseline: range | None
    published: Collection[Window]

    def since_then(self, window: Window, measure: Measure) -> list[Change] | None:
        """Against the previous comparable window; `measure` is what is compared, a row of numbers for a window."""
        found = comparable(window, self.period, self.known)
        if found is None or found[0] not in self.published:
            return None
        return _changes(measure(window), measure(found[0]), found[0], found[1])

    def since_normal(self, window: Window, measure: Measure) -> list[Change] | None:
        """Against the mean of the windows at the same time of the week (or of the day) within the baseline."""
        if self.baseline is None:
            return None
        normal = [w for w in same_phase(window, self.period, self.baseline) if w in self.published]
        if not normal:
            return None
        then = _mean([measure(w) for w in normal])
        words = f"the mean of {len(normal)} comparable windows"
        return _changes(measure(window), then, Window(self.baseline[0], self.baseline[-1]), words)


def with_changes(report: MobilityReport, baseline: range | None = None) -> MobilityReport:
    """The report with every change among the windows it tells of; `baseline` are the periods that count as normal.

    What is published period by period compares no further back than the horizon; put together, it reaches further.
    """
    told = {Window(w.first, w.last): w for w in report.windows if not w.suppressed}
    if not told:
        return report
    known = range(min(w.first for w in told), max(w.last for w in told) + 1)
    period = timedelta(seconds=report.period_seconds)

    def compare(published: Mapping[Window, Sequence[Quantity | None]]) -> dict[Window, list[dict[str, Change | None]]]:
        changes = Changes(period, known, baseline, published)
        return {window: _since(changes, window, published) for window in published}

    visitors = compare({window: [said.visitors] for window, said in told.items()})
    names = [attribute.name for attribute in next(iter(told.values())).attributes]
    people = {name: compare(_people(told, name)) for name in names}

    def changed(said: WindowReport) -> WindowReport:
        window = Window(said.first, said.last)
        if window not in told:
            return said
        attributes = tuple(_updated(attribute, people[attribute.name].get(window, ())) for attribute in said.attributes)
        return said.model_copy(update={**visitors[window][0], "attributes": attributes})

    return report.model_copy(update={"windows": tuple(map(changed, report.windows))})


def _people(told: Mapping[Window, WindowReport], name: str) -> dict[Window, Sequence[Quantity]]:
    """Of one attribute, the people of every window that says something of it."""
    values = {window: said.attribute(name).values for window, said in told.items()}
    return {window: [row.people for row in rows] for window, rows in values.items() if rows}


def _since(
    changes: Changes, window: Window, published: Mapping[Window, Sequence[Quantity | None]]
) -> list[dict[str, Change | None]]:
    """For each number that is published of a window: its changes."""

    def measure(window: Window) -> Estimates:
        return measured(published[window])

    unknown: list[Change | None] = [None] * len(published[window])
    then = changes.since_then(window, measure) or unknown
    normal = changes.since_normal(window, measure) or unknown
    return [{"change": a, "baseline": b} for a, b in zip(then, normal, strict=True)]


def _updated(attribute: AttributeReport, updates: Sequence[dict[str, Change | None]]) -> AttributeReport:
    rows = zip(attribute.values, updates, strict=True)
    return attribute.model_copy(update={"values": tuple(row.model_copy(update=update) for row, update in rows)})


def _mean(parts: list[Estimates]) -> Estimates:
    """The mean; its error as if all parts had the same noise, which people with the same memos nearly do."""
    return Estimates(
        *(np.mean([getattr(part, name) for part in parts], axis=0) for name in ("value", "error", "low", "high"))
    )


def _changes(now: Estimates, then: Estimates, window: Window, words: str) -> list[Change]:
    by = ratio(now, then)
    percent = Estimates((by.value - 1) * 100, by.error * 100, (by.low - 1) * 100, (by.high - 1) * 100)
    return [Change(percent=part, against=words, first=window.first, last=window.last) for part in quantities(percent)]
