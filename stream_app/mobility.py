"""The mobility report of a period: all windows that end with it, from the closed periods they reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from analytics.mobility import History, mobility_report
from protocols.scheme import Scheme
from stream_app.counters import Counts
from stream_app.presence import Cells


@dataclass(frozen=True)
class ClosedPeriod:
    """What windows are made of: exact counts, and the n[gap - 1] of each attribute that may be published."""

    counts: Counts
    cells: Cells


Reporter = Callable[[Scheme, int, Mapping[int, ClosedPeriod]], bytes]
"""Makes the mobility report of a period from all closed periods its windows reach, itself included."""


def publish_mobility(scheme: Scheme, period: int, closed: Mapping[int, ClosedPeriod]) -> bytes:
    """The report as JSON. It depends on the counts alone, so a republication is the same bytes."""
    first = min(closed)
    reach = [closed[t] for t in range(first, period + 1)]
    horizon = scheme.survey.horizon
    dense = {q.name: [past.counts[q.name].dense(horizon) for past in reach] for q in scheme.questions}
    history = History(
        scheme,
        first,
        reports={name: np.stack([n for n, _ in periods]) for name, periods in dense.items()},
        supports={name: np.stack([N for _, N in periods]) for name, periods in dense.items()},
        cells={q.name: np.stack([past.cells[q.name] for past in reach]) for q in scheme.questions},
    )
    return mobility_report(history, ending=period).model_dump_json().encode()
