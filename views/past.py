"""What views are made from: the finals of consecutive periods, or what is open of a survey."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from analytics.estimation import CellNoise, exact
from analytics.mobility import Answers, ByGap, CountHistory
from analytics.windows import UnitSum
from protocols.arrays import Whole
from protocols.scheme import Scheme
from protocols.survey import CalendarVisits
from stream_app.counting import Counts
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

    @cached_property
    def history(self) -> CountHistory:
        """The counts of all periods that windows of the last one include."""
        return history_of(self.scheme, self.finals[-self.scheme.survey.horizon :])


@dataclass(frozen=True, eq=False)
class Open:
    """What is open of a survey: its status, and finals so far of the periods whose counts may be published."""

    scheme: Scheme
    status: Status
    counted: Mapping[int, Final]


@dataclass(frozen=True, eq=False)
class PeriodAnswers:
    """What is released of a period: its counts by question, its answers, and all its reports.

    `total` is None where a question is left out. Then shares are those of a sample of unknown size.
    """

    counts: Counts | Release
    answers: Mapping[str, Answers]
    total: int | None

    @staticmethod
    def of(scheme: Scheme, final: Final) -> "PeriodAnswers":
        counts = final.counts
        if isinstance(counts, Release):
            sizes = {name: max(0, int(n.sum())) for name, n in counts.n.items()}
            supports = counts.N
        else:
            sizes = {name: found.total for name, found in counts.items()}
            supports = {name: found.supports for name, found in counts.items()}
        total = sum(sizes[kind] for kind in scheme.kinds) if sizes.keys() >= set(scheme.kinds) else None
        visitors = exact(np.array(np.inf if total is None else total))
        answers = {
            q.name: Answers(q, sizes[q.name], supports[q.name], visitors, CellNoise.of(scheme, q.name))
            for q in scheme.questions
            if q.name in sizes
        }
        return PeriodAnswers(counts, answers, total)


def history_of(scheme: Scheme, finals: Sequence[Final]) -> CountHistory:
    """The counts of consecutive finals, as windows add them up; all flags count as one gap: windows are periods."""
    horizon, kinds, flags = scheme.survey.horizon, set(scheme.kinds), scheme.survey.visitors is not None
    nothing = np.zeros(0, dtype=np.int64)
    supports: dict[str, list[ByGap]] = {q.name: [] for q in scheme.questions}
    reports = {name: np.zeros((len(finals), horizon), dtype=np.int64) for name in {*supports, *kinds}}
    agreed, ranges = list[Whole](), list[Whole | None]()
    for row, final in enumerate(finals):
        counts = final.counts
        if isinstance(counts, Release):
            agreed.append(counts.agreed.cells.sum(keepdims=True) if flags else counts.agreed.cells)
            ranges.append(None)
            for name, n in counts.n.items():
                reports[name][row] = n.sum() if flags else n
            for name, of_all in supports.items():
                of_all.append(ByGap(np.array([horizon]), counts.N[name][None]))  # of all gaps: for single periods
            continue
        gaps = {name: np.ones_like(found.n) if flags else found.gaps.astype(np.int64) for name, found in counts.items()}
        firsts = np.ones(1, dtype=np.int64) if flags else next(iter(gaps.values()), nothing)
        ranges.append((firsts if counts.keys() >= kinds else nothing) if final.ranges else None)
        if final.ranges:  # nobody reported before period 0: what begins after the period are new visitors
            gaps = {name: np.where(known > final.period, horizon, known) for name, known in gaps.items()}
        for name, found in counts.items():
            np.add.at(reports[name][row], gaps[name] - 1, found.n)
        for q in scheme.questions:
            own = counts[q.name].N if q.name in counts else np.zeros((0, q.k), dtype=np.int64)
            supports[q.name].append(ByGap(gaps.get(q.name, nothing), own))
    cells = np.array(agreed, dtype=np.int64) if agreed else None
    units = finals[-1].units if flags else {}
    return CountHistory(scheme, finals[0].period, reports, supports, cells, ranges, units, _newest(scheme, finals[-1]))


def _newest(scheme: Scheme, final: Final) -> UnitSum | None:
    """A period as a unit of its own, for its new visitors; None where nothing is known by flags."""
    visits, counts = scheme.visits, final.counts
    if final.ranges or not isinstance(visits, CalendarVisits) or "ever" not in visits.units:
        return None
    new = sums_of_period(visits, final.period, counts)["ever"]
    if isinstance(counts, Release):
        n = {name: int(found.sum()) for name, found in counts.n.items()}
        agreed = new.agreed and (int(counts.agreed.cells.sum()), new.agreed[1])
        return replace(new, n=n, cells=(len(counts.axis), new.cells[1]), agreed=agreed)
    return replace(new, n={name: found.total for name, found in counts.items()})
