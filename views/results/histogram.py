"""The histogram of a period: the shares of every value among those who reported; and many of them as an Arrow table."""

from __future__ import annotations  # pyarrow is loaded when it is used, and not for a type

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import product
from typing import Any, Literal

from pydantic import Field

from analytics.columns import Column, CountColumn, CountColumns, Part, ResultModel
from analytics.integrity import Integrity
from analytics.mobility import Axis, Sizes, axes_of, sizes_of
from protocols.arrays import lazy_arrow as pa
from protocols.question import Question
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey import Survey
from stream_app.counting import Counts
from stream_app.finals import PublishedGuarantees, published_guarantees
from stream_app.log import TopicName
from views.past import Past, PeriodAnswers
from views.results.verdict import verdict_of, verdict_reach
from views.view import Pieces, View

Kind = Literal["final", "provisional"]
Suppression = Literal["minimum", "open"]  # fewer reports than the survey's minimum; open, in surveys with central
_NUMBERS = ("estimate", "error", "low", "high", "consistent", "consistent_low", "consistent_high")
_ADJUSTED = ("adjusted", "adjusted_error", "adjusted_low", "adjusted_high")
COLUMNS = {
    "period": int,
    "begin": datetime,
    "end": datetime,
    **dict.fromkeys(["attribute", "value", "row", "column"], str),
    "n": int,
    **dict.fromkeys(_NUMBERS + _ADJUSTED, float),
    "suppressed": str,
    "kind": str,
}


class GapCounts(ResultModel):
    """Sufficient statistics: any estimate can be made from them, and they can be added up over periods."""

    gaps: CountColumn
    n: CountColumn
    supports: CountColumns | None
    supports_of_all_gaps: CountColumn | None = None
    widths: CountColumn | None = None


class AttributeHistogram(ResultModel):
    """How often each value of one attribute occurs, among those who reported."""

    name: str
    mechanism: str
    values: tuple[str, ...]
    several: int | None = Field(None, exclude_if=lambda several: several is None)  # then the shape is as before
    axes: tuple[Axis, ...] = ()
    n: int | None
    suppressed: Suppression | None
    estimate: Column | None = None
    error: Column | None = None
    low: Column | None = None
    high: Column | None = None
    consistent: Column | None = None
    consistent_low: Column | None = None
    consistent_high: Column | None = None
    adjusted: Column | None = None
    adjusted_error: Column | None = None
    adjusted_low: Column | None = None
    adjusted_high: Column | None = None
    sizes: Sizes | None = Field(None, exclude_if=lambda sizes: sizes is None)
    statistics: GapCounts | None = None


class Histogram(ResultModel):
    """The result of one period of one survey."""

    schema_version: int = 7
    kind: Kind
    survey: str
    fingerprint: str
    period: int
    begin: datetime
    end: datetime
    n: int | None
    suppressed: Suppression | None
    attributes: tuple[AttributeHistogram, ...]
    presence_only: GapCounts | None = None
    integrity: Integrity | None = None
    guarantees: PublishedGuarantees
    pieces: Pieces = ()

    def attribute(self, name: str) -> AttributeHistogram:
        return next(attribute for attribute in self.attributes if attribute.name == name)


def build_histogram(
    kind: Kind,
    scheme: Scheme,
    period: int,
    known: PeriodAnswers,
    integrity: Integrity | None = None,
) -> Histogram:
    """The histogram of a period, from what is released of it."""
    survey, total = scheme.survey, known.total
    few = total is None or total < survey.threshold
    attributes = tuple(_attribute(q, known, survey) for q in scheme.questions)
    begin, end = survey.bounds(period)
    silent = PRESENCE_ONLY in scheme.kinds and total is not None and not any(a.suppressed for a in attributes)
    return Histogram(
        schema_version=_version(scheme),
        kind=kind,
        survey=survey.id,
        fingerprint=scheme.fingerprint,
        period=period,
        begin=begin,
        end=end,
        n=None if few else total,
        suppressed="minimum" if few else None,
        attributes=attributes,
        presence_only=_by_gap(known.counts, PRESENCE_ONLY, survey) if silent else None,
        integrity=integrity,
        guarantees=published_guarantees(scheme),
    )


def _version(scheme: Scheme) -> int:
    """The first version that has this shape: programs that know no later one read it, too."""
    if scheme.survey.central is not None:
        return 7
    return 6 if any(question.several > 1 for question in scheme.questions) else 5


def _by_gap(counts: Counts, name: str, survey: Survey) -> GapCounts:
    found = counts[name]
    if survey.central is not None or survey.presence_epsilon is not None:
        supports = found.supports if found.N.shape[1] else None
        return GapCounts(gaps=found.gaps, n=found.n, supports=None, supports_of_all_gaps=supports)
    return GapCounts(
        gaps=found.gaps,
        n=found.n,
        supports=found.N if found.N.shape[1] else None,
        widths=found.widths if len(found.widths) else None,
    )


def _attribute(question: Question, known: PeriodAnswers, survey: Survey) -> AttributeHistogram:
    least = survey.threshold
    own = known.answers.get(question.name)
    asked: dict[str, Any] = {
        "name": question.name,
        "mechanism": question.label,
        "values": question.items.values,
        "several": question.attribute.several,
        "axes": axes_of(question),
    }
    if own is None:
        return AttributeHistogram(**asked, n=None, suppressed="minimum" if least else "open")
    by_gap = _by_gap(known.counts, question.name, survey)
    if own.n == 0:
        return AttributeHistogram(**asked, n=own.n, suppressed=None, statistics=by_gap)
    # The population is all who reported. If a report answers one attribute or none, its answers are a sample of them.
    shares = own.shown[: question.items.k]
    margins = [known.answers.get(axis.name) for axis in question.axes]
    enough = [margin if margin is not None and margin.n >= 1 else None for margin in margins]
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
    return build_histogram("final", past.scheme, past.period, past.answers, verdict_of(past))


def histogram_table(histograms: Iterable[Histogram]) -> pa.Table:
    """One row for each period, attribute and value; null where a histogram has no number.

    `n` is the number of reports that answered the attribute. Histograms may be final or provisional: `kind` says which.
    Of a cross, `row` and `column` are the values of its two attributes; they are null otherwise.
    """
    return pa.concat_tables([part.table() for part in histogram_parts(histograms)])


def histogram_parts(histograms: Iterable[Histogram]) -> Iterator[Part]:
    """The same, in parts; the first has columns and no rows."""
    yield Part.without_rows(COLUMNS)
    for histogram in histograms:
        for attribute in histogram.attributes:
            yield _part(histogram, attribute)


def _part(histogram: Histogram, attribute: AttributeHistogram) -> Part:
    """The rows of one attribute, made column by column."""
    entries = {
        **{name: getattr(histogram, name) for name in ("period", "begin", "end", "kind")},
        **{name: getattr(attribute, name) for name in ("n", "suppressed", *_NUMBERS, *_ADJUSTED)},
        "attribute": attribute.name,
        "value": attribute.values,
    }
    if attribute.axes:
        rows, columns = zip(*product(*(axis.values for axis in attribute.axes)), strict=True)
        entries |= {"row": rows, "column": columns}
    return Part.of(COLUMNS, len(attribute.values), entries)


HISTOGRAMS = View(
    TopicName("histograms"),
    "histogram",
    Histogram,
    make,
    verdict_reach,
    lambda found, survey: {"histograms": histogram_parts([found])},
    tables_version=5,
)
