"""The verdict on a closed period, from its counts and those of the periods that its reports' gaps reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from analytics.integrity import Answers, Closed, Integrity, flow_of, integrity_of
from protocols.privacy import width_laws
from protocols.question import Question
from protocols.scheme import Scheme
from stream_app.counting.counters import Counts
from stream_app.counting.partials import Part
from stream_app.results.presence_noise import Release


@dataclass(frozen=True)
class NotCounted:
    """Rows that are not among the counts of a period: its own refused ones, and late ones that came before its end."""

    refused: int = 0
    late: Mapping[int, int] = field(default_factory=dict)  # by period

    @staticmethod
    def of(parts: Iterable[Part]) -> NotCounted:
        """The sum over partitions."""
        refused, late = 0, dict[int, int]()
        for part in parts:
            refused += part.refused
            for period, rows in part.late.items():
                late[period] = late.get(period, 0) + rows
        return NotCounted(refused, dict(sorted(late.items())))


@dataclass(frozen=True)
class KeptVerdict:
    """What is kept of the verdict on a period: all of it where it may be published, and its alarms."""

    published: Integrity | None
    alarms: tuple[tuple[str, str], ...]  # attributes and checks


def judge(
    scheme: Scheme,
    period: int,
    counts: Counts,
    closed: Mapping[int, Counts | Release],
    missing: Mapping[int, NotCounted],
) -> KeptVerdict:
    """The verdict on a period with these exact counts.

    `closed` and `missing` are of all periods that its windows include, itself too. Of a survey with noise on presence
    the exact counts of earlier periods are not kept, so neither the jump nor the flow is known; and the verdict follows
    from exact counts, so it is not published.
    """
    known = {t: found for t, found in closed.items() if not isinstance(found, Release)}
    answers = {q.name: _answers(q, counts) for q in scheme.questions}
    before = {q.name: _answers(q, known[period - 1]) for q in scheme.questions} if period - 1 in known else {}
    flow, flows = None, {}
    if scheme.presence is None:
        flow = flow_of({t: _closed(known[t], scheme.kinds, missing[t]) for t in known}, scheme.survey.horizon)
        if scheme.discloses and not scheme.takes_turns:  # the attribute is for life, and named in each report
            for name in answers:
                one = {t: _closed(known[t], [name], missing[t]) for t in known}
                flows[name] = flow_of(one, scheme.survey.horizon)
    whole = integrity_of(
        period,
        {name: found for name, found in answers.items() if found.n},
        {name: found for name, found in before.items() if found.n},
        flow,
        flows,
    )
    sizes_of = {name: found.n for name, found in answers.items()}
    total = sum(counts[kind].total for kind in scheme.kinds)
    shown = scheme.presence is None and total >= scheme.survey.minimum
    return KeptVerdict(whole.shown(sizes_of, scheme.survey.minimum) if shown else None, whole.alarms)


def _answers(question: Question, counts: Counts) -> Answers:
    found = counts[question.name]
    return Answers(found.total, found.supports, found.widths, question.channel, width_laws(question))


def _closed(counts: Counts, names: Iterable[str], missing: NotCounted) -> Closed:
    """The reports of some kinds by gap. Which kind a row would have been that does not count is not known."""
    found = [counts[name] for name in names]
    gaps, n = np.concatenate([part.gaps for part in found]), np.concatenate([part.n for part in found])
    return Closed(gaps, n, missing.refused, missing.late)
