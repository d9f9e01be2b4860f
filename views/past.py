"""What views are made from: the finals of consecutive periods, or what is open of a survey."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.estimation import CellNoise, exact
from analytics.mobility import Answers, CountHistory
from analytics.windows import ByGap, UnitSum, UnitSums
from protocols.arrays import Whole
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey import CalendarVisits
from stream_app.counting import Statistics
from stream_app.finals import Final, Release, Status, sums_of_period


@dataclass(frozen=True, eq=False)
class Past:
    """The finals of consecutive periods of one survey. The last one is the period that a view describes.

    `memory` may hold what a view needs again for the next period, and may be empty at any time.
    """

    scheme: Scheme
    finals: Sequence[Final]
    memory: dict[str, Any] = field(default_factory=dict)

    @property
    def newest(self) -> Final:
        return self.finals[-1]

    @property
    def period(self) -> int:
        return self.newest.period

    @cached_property
    def answers(self) -> "PeriodAnswers":
        """The answers of the period, which its histogram and its windows share: each is estimated once."""
        return PeriodAnswers.of(self.scheme, self.newest)

    def last(self, periods: int) -> Sequence[Final]:
        """The last so many finals, or all there are."""
        return self.finals[-periods:]

    @cached_property
    def history(self) -> CountHistory:
        """The counts of all periods that windows of the last one include."""
        return history_of(self.scheme, self.last(self.scheme.survey.horizon))


@dataclass(frozen=True, eq=False)
class Open:
    """What is open of a survey: its status, and finals so far of the periods whose counts may be published."""

    scheme: Scheme
    status: Status
    counted: Mapping[int, Final]


class Counted(NamedTuple):
    """What is released of one question: all answers (with noise it may be negative), supports, and both by gap."""

    n: int
    supports: Whole
    by_gap: Statistics | tuple[Whole, Whole]


@dataclass(frozen=True, eq=False)
class PeriodAnswers:
    """What is released of a period: its counts by question, its answers, and all its reports.

    `total` is None where a question is left out. Then shares are those of a sample of unknown size.
    """

    counted: Mapping[str, Counted]
    answers: Mapping[str, Answers]
    total: int | None

    @staticmethod
    def of(scheme: Scheme, final: Final) -> "PeriodAnswers":
        counts = final.counts
        if isinstance(counts, Release):
            counted = {name: Counted(int(n.sum()), counts.N[name], (n, counts.N[name])) for name, n in counts.n.items()}
        else:
            counted = {name: Counted(found.total, found.supports, found) for name, found in counts.items()}
        sizes = {name: max(0, found.n) for name, found in counted.items()}
        total = sum(sizes[kind] for kind in scheme.kinds) if sizes.keys() >= set(scheme.kinds) else None
        visitors = exact(np.array(np.inf if total is None else total))
        answers = {
            q.name: Answers(
                q.channel,
                sizes[q.name],
                counted[q.name].supports,
                visitors,
                CellNoise.of(scheme, q.name),
                q.attribute.correction,
            )
            for q in scheme.questions
            if q.name in counted
        }
        return PeriodAnswers(counted, answers, total)


def history_of(scheme: Scheme, finals: Iterable[Final]) -> CountHistory:
    """The counts of consecutive finals, as windows add them up."""
    by_gaps, gaps = scheme.survey.visitors is None, np.arange(1, scheme.survey.horizon + 1)
    units: UnitSums = {}
    newest: UnitSum | None = None
    names = [*(q.name for q in scheme.questions), *([PRESENCE_ONLY] if scheme.takes_turns else [])]
    sizes = {**{q.name: q.k for q in scheme.questions}, PRESENCE_ONLY: 0}
    reports: dict[str, list[ByGap]] = {name: [] for name in names}
    supports: dict[str, list[ByGap]] = {name: [] for name in names}
    agreed: list[ByGap] = []
    ranges: list[NDArray[np.int64] | None] = []
    nothing = np.zeros(0, dtype=np.int64)
    periods = []
    for final in finals:
        periods.append(final.period)
        counts = final.counts
        complete = isinstance(counts, Release) or counts.keys() >= set(scheme.kinds)
        if not by_gaps:
            units, newest = final.units, _newest(scheme, final)
            counts = _all_flags(counts)
        ranges.append((_firsts(counts) if complete else nothing) if final.ranges else None)
        for name in names:
            if isinstance(counts, Release):
                reports[name].append(ByGap(gaps, counts.n[name]))
                supports[name].append(ByGap(gaps[-1:], counts.N[name][None]))  # of all gaps: for periods on their own
            elif name in counts:
                known = counts[name].gaps.astype(np.int64)
                if final.ranges:  # nobody reported before period 0: what begins after the period are new visitors
                    known = np.where(known > final.period, scheme.survey.horizon, known)
                reports[name].append(ByGap(known, counts[name].n))
                supports[name].append(ByGap(known, counts[name].N))
            else:
                reports[name].append(ByGap(nothing, nothing))
                supports[name].append(ByGap(nothing, np.zeros((0, sizes[name]), dtype=np.int64)))
        if isinstance(counts, Release):
            agreed.append(ByGap(gaps, counts.agreed.cells))
    return CountHistory(scheme, periods[0], reports, supports, agreed or None, ranges, units, newest)


def _newest(scheme: Scheme, final: Final) -> UnitSum | None:
    """A period as a unit of its own, for its new visitors; None where nothing is known by flags."""
    visits, counts = scheme.survey.visits, final.counts
    if final.ranges or not isinstance(visits, CalendarVisits) or "ever" not in visits.units:
        return None
    new = sums_of_period(visits, final.period, counts)["ever"]
    if isinstance(counts, Release):
        n = {name: int(found.sum()) for name, found in counts.n.items()}
        agreed = new.agreed and (int(counts.agreed.cells.sum()), new.agreed[1])
        return replace(new, n=n, cells=(len(counts.axis), new.cells[1]), agreed=agreed)
    return replace(new, n={name: found.total for name, found in counts.items()})


def _all_flags(counts: Mapping[str, Statistics] | Release) -> Mapping[str, Statistics] | Release:
    """The counts of all flags together, as those of a survey that counts single periods."""
    if isinstance(counts, Release):
        n = {name: found.sum(keepdims=True) for name, found in counts.n.items()}
        agreed = replace(counts.agreed, cells=counts.agreed.cells.sum(keepdims=True))
        return replace(counts, n=n, agreed=agreed, axis=np.ones(1, dtype=np.int64))
    return {
        name: replace(found, gaps=np.ones(1, np.uint16), n=found.n.sum(keepdims=True), N=found.supports[None])
        for name, found in counts.items()
    }


def _firsts(counts: Mapping[str, Statistics] | Release) -> NDArray[np.int64]:
    """The first gaps of the ranges, which all questions share."""
    assert not isinstance(counts, Release)
    return next(iter(counts.values())).gaps.astype(np.int64)
