"""What views are made from: the finals of consecutive periods, or what is open of a survey."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from analytics.estimation import exact
from analytics.mobility import Answers, ByGap, CountHistory, ReleasedWindows
from analytics.windows import Span, WindowSum
from protocols.scheme import Scheme
from stream_app.counting import Counts
from stream_app.finals import Final, NotCounted, Status, sum_of_period, tables_of


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

    `total` is None where it is not released, because there are too few.
    """

    counts: Counts
    answers: Mapping[str, Answers]
    total: int | None

    @staticmethod
    def of(scheme: Scheme, final: Final) -> "PeriodAnswers":
        counts = final.counts
        if final.windows is not None:
            released = released_windows(scheme, final)
            alone = next((window for window in final.windows if window.kind == "period"), None)
            if alone is None:
                return PeriodAnswers(counts, {}, None)
            visitors = released.number(alone, "visitors")
            total = None if visitors is None else int(visitors.value)
            return PeriodAnswers(counts, released.answers(alone), total)
        total = sum(counts[kind].total for kind in scheme.kinds) if counts else None
        visitors = exact(np.array(np.inf if total is None else total))
        answers = {
            question.name: Answers(question, counts[question.name].total, counts[question.name].supports, visitors)
            for question in scheme.questions
            if question.name in counts
        }
        return PeriodAnswers(counts, answers, total)


def released_windows(scheme: Scheme, final: Final) -> ReleasedWindows:
    """The windows that a final has, as estimates."""
    return ReleasedWindows(scheme, final.period, final.windows or (), tables_of(final.counts, scheme))


def history_of(scheme: Scheme, finals: Sequence[Final]) -> CountHistory:
    """The counts of consecutive finals, as windows add them up; all flags count as one gap: windows are periods."""
    horizon, kinds, flags = scheme.survey.horizon, set(scheme.kinds), scheme.survey.visitors is not None
    nothing = np.zeros(0, dtype=np.int64)
    supports: dict[str, list[ByGap]] = {q.name: [] for q in scheme.questions}
    reports = {name: np.zeros((len(finals), horizon), dtype=np.int64) for name in {*supports, *kinds}}
    for row, final in enumerate(finals):
        counts = final.counts
        gaps = {name: np.ones_like(found.n) if flags else found.gaps.astype(np.int64) for name, found in counts.items()}
        for name, found in counts.items():
            np.add.at(reports[name][row], gaps[name] - 1, found.n)
        for q in scheme.questions:
            own = counts[q.name].N if q.name in counts else np.zeros((0, q.k), dtype=np.int64)
            supports[q.name].append(ByGap(gaps.get(q.name, nothing), own))
    units = finals[-1].units if flags else {}
    return CountHistory(scheme, finals[0].period, reports, supports, units, _newest(scheme, finals[-1]))


def _newest(scheme: Scheme, final: Final) -> WindowSum | None:
    """A period as a unit of its own, for its new visitors; None where nothing is known by flags."""
    if "ever" not in scheme.survey.units:
        return None
    alone = Span("ever", final.period, final.period)
    new = sum_of_period(scheme, alone, final.period, final.counts, NotCounted())
    return replace(new, n={name: found.total for name, found in final.counts.items()})
