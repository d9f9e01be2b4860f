"""The mobility report of a period: all windows that end with it, from the closed periods they reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from analytics.mobility import CountHistory, mobility_report
from analytics.windows import ByGap
from protocols.scheme import Scheme
from stream_app.counting.counters import Counts
from stream_app.results.presence_noise import Cells


@dataclass(frozen=True)
class ClosedPeriod:
    """What windows are made of: exact counts, and the n[gap - 1] of each attribute that may be published."""

    counts: Counts
    cells: Cells


Reporter = Callable[[Scheme, int, Mapping[int, ClosedPeriod]], bytes]
"""Makes the mobility report of a period from all closed periods its windows reach, itself included."""


def publish_mobility(scheme: Scheme, period: int, closed: Mapping[int, ClosedPeriod]) -> bytes:
    """The report as JSON. It depends on the counts alone, so a republication is the same bytes."""
    first, gaps = min(closed), np.arange(1, scheme.survey.horizon + 1)
    reach = [closed[t] for t in range(first, period + 1)]
    counts = {q.name: [past.counts[q.name] for past in reach] for q in scheme.questions}
    history = CountHistory(
        scheme,
        first,
        reports={name: [ByGap(past.gaps, past.n) for past in periods] for name, periods in counts.items()},
        supports={name: [ByGap(past.gaps, past.N) for past in periods] for name, periods in counts.items()},
        cells={q.name: [ByGap(gaps, past.cells[q.name]) for past in reach] for q in scheme.questions},
    )
    return mobility_report(history).model_dump_json().encode()
