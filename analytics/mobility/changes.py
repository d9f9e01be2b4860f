"""Changes in percent, against the previous comparable window and against a baseline."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from analytics.calendar import Window, comparable, same_phase
from analytics.estimation import Estimates
from analytics.mobility.model import Change
from analytics.mobility.quantities import quantities
from analytics.ratios import ratio
from protocols.survey import Survey

Measure = Callable[[Window], Estimates]


@dataclass(frozen=True)
class Changes:
    """Comparisons among windows that are published: a change must not tell what a suppressed window keeps silent."""

    survey: Survey
    known: range
    baseline: range | None
    published: Collection[Window]

    def since_then(self, window: Window, measure: Measure) -> list[Change] | None:
        """Against the previous comparable window; `measure` is what is compared, a row of numbers for a window."""
        found = comparable(window, self.survey, self.known)
        if found is None or found[0] not in self.published:
            return None
        return _changes(measure(window), measure(found[0]), found[0], found[1])

    def since_normal(self, window: Window, measure: Measure) -> list[Change] | None:
        """Against the mean of the windows at the same time of the week (or of the day) within the baseline."""
        if self.baseline is None:
            return None
        normal = [w for w in same_phase(window, self.survey, self.baseline) if w in self.published]
        if not normal:
            return None
        then = _mean([measure(w) for w in normal])
        words = f"the mean of {len(normal)} comparable windows"
        return _changes(measure(window), then, Window(self.baseline[0], self.baseline[-1]), words)


def _mean(parts: list[Estimates]) -> Estimates:
    """The mean; its error as if all parts had the same noise, which people with the same memos nearly do."""
    return Estimates(
        *(np.mean([getattr(part, name) for part in parts], axis=0) for name in ("value", "error", "low", "high"))
    )


def _changes(now: Estimates, then: Estimates, window: Window, words: str) -> list[Change]:
    by = ratio(now, then)
    percent = Estimates((by.value - 1) * 100, by.error * 100, (by.low - 1) * 100, (by.high - 1) * 100)
    return [Change(percent=part, against=words, first=window.first, last=window.last) for part in quantities(percent)]
