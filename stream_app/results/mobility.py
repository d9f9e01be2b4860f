"""The mobility report of a period: all windows that end with it, from the closed periods they include."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pydantic import BaseModel

from analytics.mobility import CountHistory, MobilityReport, mobility_report
from analytics.windows import ByGap
from protocols.scheme import Scheme
from stream_app.counting.counters import Counts
from stream_app.results.guarantees import PublishedGuarantees, published_guarantees
from stream_app.results.histograms import Pieces
from stream_app.results.presence_noise import PresenceCounts


class MobilityResult(MobilityReport):
    """A mobility report as it is published: with the guarantees of its survey, as every histogram has them."""

    guarantees: PublishedGuarantees
    pieces: Pieces = ()


@dataclass(frozen=True)
class ClosedPeriod:
    """A closed period of a window: its exact counts, and its numbers of reports as they may be published."""

    counts: Counts
    presence: PresenceCounts

    @cached_property
    def reports(self) -> dict[str, ByGap]:
        """Reports by gap. Sums over gaps are made once, and used by every window that includes the period."""
        return {name: ByGap(counted.gaps, counted.n) for name, counted in self.counts.items()}

    @cached_property
    def supports(self) -> dict[str, ByGap]:
        return {name: ByGap(counted.gaps, counted.N) for name, counted in self.counts.items()}

    @cached_property
    def cells(self) -> dict[str, ByGap]:
        return {name: ByGap(np.arange(1, len(n) + 1), n) for name, n in self.presence.items()}


BuildMobility = Callable[[Scheme, int, Mapping[int, ClosedPeriod]], BaseModel]
"""Makes the mobility report of a period from all closed periods of its windows, itself included."""


def build_mobility(scheme: Scheme, period: int, closed: Mapping[int, ClosedPeriod]) -> MobilityResult:
    """The report. It depends on the counts alone, so a republication has the same bytes."""
    first, names = min(closed), [question.name for question in scheme.questions]
    periods = [closed[t] for t in range(first, period + 1)]
    history = CountHistory(
        scheme,
        first,
        reports={name: [past.reports[name] for past in periods] for name in names},
        supports={name: [past.supports[name] for past in periods] for name in names},
        cells={name: [past.cells[name] for past in periods] for name in periods[0].presence},
    )
    report = mobility_report(history)
    return MobilityResult(**dict(report), guarantees=published_guarantees(scheme))
