"""The histogram of a period: the shares of every value among those who reported."""

from typing import Any

from analytics.integrity import Integrity
from analytics.mobility import axes_of, sizes_of
from protocols.privacy import central_loss
from protocols.question import Question
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey import Survey
from stream_app.counting import Statistics
from stream_app.finals import CentralGuarantees, PublishedGuarantees, guarantees_without_figure, published_guarantees
from stream_app.log import TopicName
from views.past import Counted, Past, PeriodAnswers
from views.results.histogram import AttributeHistogram, GapCounts, Histogram, Kind, histogram_parts
from views.results.verdict import verdict_of, verdict_reach
from views.view import View

EVERY = 1 << 30  # finals: more than there are
OPEN = "provisional: the period is still open"


def build_histogram(
    kind: Kind,
    scheme: Scheme,
    period: int,
    known: PeriodAnswers,
    integrity: Integrity | None = None,
    guarantees: PublishedGuarantees | None = None,
) -> Histogram:
    """The histogram of a period, from what is released of it."""
    survey, total = scheme.survey, known.total
    few = total is None or total < survey.minimum
    attributes = tuple(_attribute(q, known, survey) for q in scheme.questions)
    begin, end = survey.bounds(period)
    silent = known.counted.get(PRESENCE_ONLY)
    return Histogram(
        schema_version=5 if survey.central is None and not any(q.several > 1 for q in scheme.questions) else 6,
        kind=kind,
        survey=survey.id,
        fingerprint=scheme.fingerprint,
        period=period,
        begin=begin,
        end=end,
        n=None if few else total,
        suppressed="minimum" if few else None,
        attributes=attributes,
        presence_only=None if silent is None or any(a.suppressed for a in attributes) else _by_gap(silent, survey),
        integrity=integrity,
        guarantees=guarantees or guarantees_without_figure(scheme, OPEN),
    )


def _by_gap(counted: Counted, survey: Survey) -> GapCounts:
    if isinstance(counted.by_gap, Statistics):
        found = counted.by_gap
        if survey.central is not None:
            supports = found.supports if found.N.shape[1] else None
            return GapCounts(gaps=found.gaps, n=found.n, supports=None, supports_of_all_gaps=supports)
        return GapCounts(
            gaps=found.gaps,
            n=found.n,
            supports=found.N if found.N.shape[1] else None,
            widths=found.widths if len(found.widths) else None,
        )
    n, N = counted.by_gap
    return GapCounts(gaps=survey.visits.cells, n=n, supports=None, supports_of_all_gaps=N if len(N) else None)


def _attribute(question: Question, known: PeriodAnswers, survey: Survey) -> AttributeHistogram:
    minimum = survey.minimum
    own = known.answers.get(question.name)
    asked: dict[str, Any] = {
        "name": question.name,
        "mechanism": question.label,
        "values": question.items.values,
        "several": question.attribute.several,
        "axes": axes_of(question),
    }
    if own is None or own.n < minimum:
        return AttributeHistogram(**asked, n=None, suppressed="minimum" if minimum else "open")
    by_gap = _by_gap(known.counted[question.name], survey)
    if own.n == 0:
        return AttributeHistogram(**asked, n=own.n, suppressed=None, statistics=by_gap)
    # The population is all who reported. If a report answers one attribute or none, its answers are a sample of them.
    shares = own.shown[: question.items.k]
    margins = [known.answers.get(axis.name) for axis in question.axes]
    enough = [margin if margin is not None and margin.n >= max(minimum, 1) else None for margin in margins]
    return AttributeHistogram(
        **asked,
        n=own.n,
        suppressed=None,
        estimate=shares.value,
        error=shares.error,
        low=shares.low,
        high=shares.high,
        **own.fitted(enough),
        sizes=sizes_of(own),
        statistics=by_gap,
    )


def make(past: Past) -> Histogram:
    return build_histogram("final", past.scheme, past.period, past.answers, verdict_of(past), _guarantees(past))


def reach(scheme: Scheme) -> int:
    """With `central`, what all periods from the first on reveal together is published with each."""
    return verdict_reach(scheme) if scheme.survey.central is None else EVERY


def _guarantees(past: Past) -> PublishedGuarantees:
    promised, promise = published_guarantees(past.scheme), past.scheme.survey.central
    if promise is None:
        return promised
    known, periods = past.memory.setdefault("crowds", {}), range(past.period + 1 - len(past.finals), past.period + 1)
    for place, period in enumerate(periods):
        if period not in known:
            released = PeriodAnswers.of(past.scheme, past.finals[place]).answers
            known[period] = {name: answers.n for name, answers in released.items()}
    crowds = {q.name: [known[period].get(q.name, 0) for period in periods] for q in past.scheme.questions}
    newest = {name: sizes[-1:] for name, sizes in crowds.items()}
    one, every = (central_loss(past.scheme, sizes, delta=promise.delta) for sizes in (newest, crowds))
    return CentralGuarantees(**dict(promised), central=one, central_since_first=every)


HISTOGRAMS = View(
    TopicName("histograms"),
    "histogram",
    Histogram,
    make,
    reach,
    lambda found, survey: {"histograms": histogram_parts([found])},
    tables_version=5,
)
