"""The verdict on a period: whether its counts can have come from honest devices. It knows what is released alone.

The flow needs the gaps or flags of reports, which finals have where everything is published.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from analytics.integrity import Answers, Closed, Flow, Integrity, flow_of, integrity_of
from analytics.windows import Span
from protocols.privacy import width_laws
from protocols.question import Question
from protocols.scheme import Scheme
from stream_app.counting import Counts
from stream_app.finals import Final, NotCounted, sum_of_period
from views.past import Past


def verdict_reach(scheme: Scheme) -> int:
    """How many finals the verdict on the last one looks at."""
    return 2 if scheme.survey.releases_windows else max(scheme.survey.horizon, 2)


@lru_cache(1)  # a histogram and a mobility report of the same past follow each other
def verdict_of(past: Past) -> Integrity | None:
    """The verdict on the last period; None where nothing is released of it, or counts have noise."""
    scheme, newest = past.scheme, past.newest.counts
    if scheme.presence is not None or not newest:
        return None
    answers = {q.name: _answers(q, newest) for q in scheme.questions if q.name in newest}
    before = past.finals[-2].counts if len(past.finals) > 1 else {}
    flows: dict[str, Flow | None] = {}
    by_gap = past.newest.windows is None
    if by_gap and scheme.discloses and not scheme.takes_turns:  # the attribute is for life, and named in each report
        flows = {name: _flow(past, [name]) for name in answers}
    return integrity_of(
        past.period,
        {name: found for name, found in answers.items() if found.n},
        {q.name: found for q in scheme.questions if q.name in before and (found := _answers(q, before)).n},
        _flow(past, scheme.kinds) if by_gap else None,
        flows,
    )


def _flow(past: Past, names: Sequence[str]) -> Flow | None:
    """The flow of some kinds of reports, through the periods up to the last one in which all of them are released."""
    horizon, known = past.scheme.survey.horizon, list[Final]()
    if past.scheme.survey.units:
        return _flow_of_units(past, names)
    for final in reversed(past.finals[-verdict_reach(past.scheme) :]):
        if final.windows is not None or not final.counts.keys() >= set(names):
            break
        known.append(final)
    if not known:
        return None
    return flow_of({final.period: _closed(final, names) for final in known}, horizon)


def _flow_of_units(past: Past, names: Sequence[str]) -> Flow | None:
    """Who is not the first in a unit was there before: against the visitors of the unit so far, or late or refused.

    The unit with the least room for false flags counts.
    """
    counts = past.newest.counts
    found = []
    for unit, through in past.newest.units.items():
        span = Span(unit, through.first, past.period)
        now = sum_of_period(past.scheme, span, past.period, counts, NotCounted())
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


def _closed(final: Final, names: Iterable[str]) -> Closed:
    """The reports of some kinds by gap. Which kind a row would have been that does not count is not known."""
    found = [final.counts[name] for name in names]
    gaps = np.concatenate([part.gaps.astype(np.int64) for part in found])
    n = np.concatenate([part.n for part in found])
    return Closed(gaps, n, final.missing.refused, final.missing.late)
