"""The mobility report of a period: all windows that end with it, from the closed periods they include."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from pydantic import BaseModel

from analytics.integrity import Integrity
from analytics.mobility import Answers, CountHistory, MobilityReport, mobility_report
from analytics.windows import ByGap
from protocols.scheme import PRESENCE_ONLY, Scheme
from stream_app.counting.counters import Counts
from stream_app.results.guarantees import PublishedGuarantees, published_guarantees
from stream_app.results.histograms import Pieces
from stream_app.results.presence_noise import Release


class MobilityResult(MobilityReport):
    """A mobility report as it is published: with the guarantees of its survey, as every histogram has them."""

    guarantees: PublishedGuarantees
    pieces: Pieces = ()


ClosedPeriod = Counts | Release
"""What is kept of a closed period for its windows: its counts or, where presence has noise, its release."""

BuildMobility = Callable[[Scheme, int, Mapping[int, ClosedPeriod], Integrity | None, Mapping[str, Answers]], BaseModel]
"""Makes the mobility report of a period from all closed periods of its windows, itself included, and its verdict.

The last argument has the answers of the period itself, as its histogram has estimated them."""


def build_mobility(
    scheme: Scheme,
    period: int,
    closed: Mapping[int, ClosedPeriod],
    integrity: Integrity | None = None,
    estimated: Mapping[str, Answers] | None = None,
) -> MobilityResult:
    """The report. It depends on the counts alone, so a republication has the same bytes."""
    first = min(closed)
    history = _history(scheme, first, [closed[t] for t in range(first, period + 1)])
    exact = history.agreed is None  # with noise, windows have visitors of their own: those that agree
    report = mobility_report(history, estimated if exact else None)
    alone = (period, period)
    windows = tuple(
        window.model_copy(update={"integrity": integrity}) if (window.first, window.last) == alone else window
        for window in report.windows
    )
    return MobilityResult(**{**dict(report), "windows": windows}, guarantees=published_guarantees(scheme))


def _history(scheme: Scheme, first: int, periods: Sequence[ClosedPeriod]) -> CountHistory:
    gaps = np.arange(1, scheme.survey.horizon + 1)
    names = [*(q.name for q in scheme.questions), *([PRESENCE_ONLY] if scheme.takes_turns else [])]
    reports: dict[str, list[ByGap]] = {name: [] for name in names}
    supports: dict[str, list[ByGap]] = {name: [] for name in names}
    agreed: list[ByGap] = []
    for past in periods:
        if isinstance(past, Release):
            agreed.append(ByGap(gaps, past.agreed.cells))
        for name in reports:
            if isinstance(past, Release):
                reports[name].append(ByGap(gaps, past.n[name]))
                supports[name].append(ByGap(gaps[-1:], past.N[name][None]))  # of all gaps: for periods on their own
            else:
                reports[name].append(ByGap(past[name].gaps, past[name].n))
                supports[name].append(ByGap(past[name].gaps, past[name].N))
    return CountHistory(scheme, first, reports, supports, agreed or None)
