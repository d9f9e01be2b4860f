"""Changes in percent between published windows, and against a baseline.

Changes are computed by readers of the reports: the window to compare with may lie further back than one report's
horizon, and the baseline is the reader's choice. Only published numbers are compared, so a change reveals nothing about
a suppressed window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from analytics.estimation.estimates import Estimates
from analytics.estimation.ratios import ratio
from analytics.mobility.model import PARTS, AttributeReport, Change, MobilityReport, WindowReport, measured, quantities
from analytics.windows.calendar import Window, comparable, same_phase

Fields = dict[str, Change | None]  # the fields `change` and `baseline` of one published number


def with_changes(report: MobilityReport, baseline: range | None = None) -> MobilityReport:
    """The report with every change between its windows; `baseline` are the periods that count as normal."""
    published = {Window(w.first, w.last): w for w in report.windows if not w.suppressed}
    if not published:
        return report
    known = range(min(w.first for w in published), max(w.last for w in published) + 1)
    comparison = _Comparison(timedelta(seconds=report.period_seconds), known, baseline)
    visitors = comparison.changes({window: measured([shown.visitors]) for window, shown in published.items()})
    names = list(dict.fromkeys(attribute.name for shown in published.values() for attribute in shown.attributes))
    people = {name: comparison.changes(_people(published, name)) for name in names}

    def changed(shown: WindowReport) -> WindowReport:
        window = Window(shown.first, shown.last)
        if window not in published:
            return shown
        attributes = tuple(_updated(part, people[part.name].get(window, ())) for part in shown.attributes)
        return shown.model_copy(update={**visitors[window][0], "attributes": attributes})

    return report.model_copy(update={"windows": tuple(map(changed, report.windows))})


@dataclass(frozen=True)
class _Comparison:
    """Which windows are compared: `known` are the periods of the report."""

    period: timedelta
    known: range
    baseline: range | None

    def changes(self, published: Mapping[Window, Estimates]) -> dict[Window, list[Fields]]:
        """The changes of each published number. `published` holds a row of numbers for every window."""
        changes = {}
        for window, now in published.items():
            unknown: list[Change | None] = [None] * len(now.value)
            change = self._since_previous(window, published) or unknown
            baseline = self._since_baseline(window, published) or unknown
            changes[window] = [{"change": a, "baseline": b} for a, b in zip(change, baseline, strict=True)]
        return changes

    def _since_previous(self, window: Window, published: Mapping[Window, Estimates]) -> list[Change] | None:
        """Against the previous comparable window."""
        found = comparable(window, self.period, self.known)
        if found is None or found[0] not in published:
            return None
        earlier, words = found
        return _changes(published[window], published[earlier], earlier, words)

    def _since_baseline(self, window: Window, published: Mapping[Window, Estimates]) -> list[Change] | None:
        """Against the mean of the windows at the same time of the week (or of the day) within the baseline."""
        if self.baseline is None:
            return None
        normal = [published[w] for w in same_phase(window, self.period, self.baseline) if w in published]
        if not normal:
            return None
        words = f"the mean of {len(normal)} comparable windows"
        return _changes(published[window], _mean(normal), Window(self.baseline[0], self.baseline[-1]), words)


def _people(published: Mapping[Window, WindowReport], name: str) -> dict[Window, Estimates]:
    """The people by value of one attribute, in every window that has answers."""
    rows = {
        window: part.values for window, shown in published.items() for part in shown.attributes if part.name == name
    }
    return {window: measured([row.people for row in values]) for window, values in rows.items() if values}


def _updated(attribute: AttributeReport, updates: Sequence[Fields]) -> AttributeReport:
    rows = zip(attribute.values, updates, strict=True)
    return attribute.model_copy(update={"values": tuple(row.model_copy(update=update) for row, update in rows)})


def _mean(parts: Sequence[Estimates]) -> Estimates:
    """The mean. Its error assumes that the parts share their noise: people who keep their memos nearly do."""
    return Estimates(*(np.mean([getattr(part, name) for part in parts], axis=0) for name in PARTS))


def _changes(now: Estimates, then: Estimates, window: Window, words: str) -> list[Change]:
    by = ratio(now, then)
    percent = Estimates((by.value - 1) * 100, by.error * 100, (by.low - 1) * 100, (by.high - 1) * 100)
    return [Change(percent=part, against=words, first=window.first, last=window.last) for part in quantities(percent)]
