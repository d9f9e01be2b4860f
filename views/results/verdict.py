"""The verdict on a period: whether its counts can have come from honest devices. It knows what is released alone.

The flow needs the gaps of reports. Where gaps are joined to ranges, those of one gap are known, and what is missing was
rounded down: then as many reports may have been there as the rounding can hide.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from analytics.integrity import Answers, Closed, Flow, Integrity, flow_of, integrity_of
from protocols.privacy import width_laws
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey import CalendarVisits
from stream_app.counting import Counts
from stream_app.finals import Final, Release, sums_of_period
from views.past import Past

UNKNOWN = 1 << 16
"""Longer than any gap."""


def verdict_reach(scheme: Scheme) -> int:
    """How many finals the verdict on the last one looks at."""
    return max(scheme.survey.horizon, 2)


@lru_cache(1)  # a histogram and a mobility report of the same past follow each other
def verdict_of(past: Past) -> Integrity | None:
    """The verdict on the last period; None where nothing is released of it, or counts have noise."""
    scheme, newest = past.scheme, past.newest.counts
    if isinstance(newest, Release) or not newest:
        return None
    answers = {q.name: _answers(q, newest) for q in scheme.questions if q.name in newest}
    earlier = past.finals[-2].counts if len(past.finals) > 1 else {}
    before = {} if isinstance(earlier, Release) else earlier
    flows: dict[str, Flow | None] = {}
    if scheme.discloses and not scheme.takes_turns:  # the attribute is for life, and named in each report
        flows = {name: _flow(past, [name]) for name in answers}
    return integrity_of(
        past.period,
        {name: found for name, found in answers.items() if found.n},
        {q.name: found for q in scheme.questions if q.name in before and (found := _answers(q, before)).n},
        _flow(past, scheme.kinds),
        flows,
    )


def _flow(past: Past, names: Sequence[str]) -> Flow | None:
    """The flow of some kinds of reports, through the periods up to the last one in which all of them are released."""
    horizon, known = past.scheme.survey.horizon, list[Final]()
    if past.scheme.survey.units:
        return _flow_of_units(past, names)
    for final in reversed(past.finals[-verdict_reach(past.scheme) :]):
        if isinstance(final.counts, Release) or not final.counts.keys() >= set(names):
            break
        known.append(final)
    if not known:
        return None
    hidden, first = max(past.scheme.survey.minimum - 1, 0), known[-1].period
    return flow_of(
        {final.period: _closed(final, names, hidden, range(first, final.period)) for final in known}, horizon
    )


def _flow_of_units(past: Past, names: Sequence[str]) -> Flow | None:
    """Who is not the first in a unit was there before: against the visitors of the unit so far, or late or refused.

    The unit with the least room for false flags counts.
    """
    visits, counts = past.scheme.visits, past.newest.counts
    if isinstance(counts, Release) or past.newest.ranges or not isinstance(visits, CalendarVisits):
        return None
    found = []
    for unit, now in sums_of_period(visits, past.period, counts).items():
        through = past.newest.units[unit]
        before = sum(through.n[name] - now.n[name] for name in names)
        claimed = sum(counts[name].total - now.n[name] for name in names)
        missing = through.late + through.refused
        if claimed:
            found.append(Flow(period=through.first, claimed=claimed, reported=before + missing))
    return min(found, key=lambda flow: flow.reported - flow.claimed, default=None)


def _answers(question: Question, counts: Counts) -> Answers:
    found = counts[question.name]
    laws = width_laws(question) if len(found.widths) else np.zeros((0, 0))  # with `central`, widths are not released
    return Answers(found.total, found.supports, found.widths, question.channel, laws)


def _closed(final: Final, names: Iterable[str], hidden: int, earlier: Iterable[int]) -> Closed:
    """The reports of some kinds by gap. Which kind a row would have been that does not count is not known.

    `hidden` is what rounding hides at most, of each number of rows of this and of earlier periods.
    """
    assert not isinstance(final.counts, Release)
    found = [final.counts[name] for name in names]
    gaps = [part.gaps.astype(np.int64) for part in found]
    if final.ranges:  # a range of several gaps refers to no period
        gaps = [np.where(np.append(firsts[1:], UNKNOWN) == firsts + 1, firsts, UNKNOWN) for firsts in gaps]
    late = {period: final.missing.late.get(period, 0) + hidden for period in earlier} if hidden else final.missing.late
    n = np.concatenate([part.n for part in found])
    return Closed(np.concatenate(gaps), n, final.missing.refused + hidden, late)
