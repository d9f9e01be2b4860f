"""Histograms and live results. A final depends on the survey and its reports, not on partitions, offsets or time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from analytics.columns import Column, CountColumn, CountColumns
from analytics.estimation import CellNoise, exact
from analytics.integrity import Integrity
from analytics.mobility import Answers, Axis, axes_of
from protocols.question import Question
from protocols.scheme import PRESENCE_ONLY, Scheme
from stream_app.counting.counters import Counts, Statistics
from stream_app.log.losses import Loss
from stream_app.results.guarantees import PublishedGuarantees, published_guarantees
from stream_app.results.presence_noise import Release

Kind = Literal["final", "provisional"]
Suppression = Literal["minimum"]  # fewer reports than the survey's minimum


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Pieces = Annotated[
    tuple[str, ...],
    Field(description="of a result too large for one record: digests of the pieces that have its empty columns"),
]


class GapCounts(_Result):
    """Sufficient statistics: any estimate can be made from them, and they can be added up over periods."""

    gaps: CountColumn = Field(description="the gaps that occur, ascending (every gap, where counts have noise)")
    n: CountColumn = Field(
        description="reports with each gap; where the survey has presence_epsilon they have noise and may be negative"
    )
    supports: CountColumns | None = Field(
        description="reports with each gap that support each value; null where the survey has presence_epsilon, and of "
        "presence-only reports"
    )
    supports_of_all_gaps: CountColumn | None = Field(
        None, description="reports that support each value, noised; null unless the survey has presence_epsilon"
    )
    widths: CountColumn | None = Field(
        None,
        description="reports that support 0, 1 .. all values; null where each supports one, where the survey has "
        "presence_epsilon, and of presence-only reports",
    )


class AttributeHistogram(_Result):
    """How often each value of one attribute occurs, among those who reported."""

    name: str
    mechanism: str
    values: tuple[str, ...]
    axes: tuple[Axis, ...] = Field(
        (), description="of a cross: its two attributes; values are all pairs, row by row, the first one changes last"
    )
    n: int | None = Field(description="reports that answered this attribute; null where suppressed")
    suppressed: Suppression | None = Field(description="why nothing is published; null where it is")
    estimate: Column | None = Field(None, description="unbiased; may be negative, need not sum to 1")
    error: Column | None = Field(None, description="standard errors of the estimates")
    low: Column | None = Field(None, description="lower ends of the 95 % intervals")
    high: Column | None = Field(None, description="upper ends of the 95 % intervals")
    consistent: Column | None = Field(
        None,
        description="a histogram that sums to 1: smoothed for ordered mechanisms, otherwise the nearest one; of a "
        "cross the nearest one whose rows and columns sum to those of its attributes",
    )
    consistent_low: Column | None = Field(
        None,
        description="lower ends of intervals for `consistent`: 95 % on average over the values, not for each; "
        "null unless it is a cross, or the mechanism is ordered and the survey has no presence_epsilon",
    )
    consistent_high: Column | None = Field(None, description="upper ends of the same intervals")
    adjusted: Column | None = Field(
        None,
        description="of a cross: estimates made to agree with those of both attributes by least squares; unbiased, "
        "with smaller errors; null otherwise",
    )
    adjusted_error: Column | None = Field(None, description="their standard errors")
    adjusted_low: Column | None = Field(None, description="lower ends of their 95 % intervals")
    adjusted_high: Column | None = Field(None, description="upper ends of their 95 % intervals")
    statistics: GapCounts | None = None


class Histogram(_Result):
    """The result of one period of one survey."""

    schema_version: int = Field(5, description="of this shape; a reader refuses one that is newer than it knows")
    kind: Kind
    survey: str
    fingerprint: str
    period: int
    begin: datetime
    end: datetime
    n: int | None = Field(description="reports counted; null where suppressed")
    suppressed: Suppression | None = Field(description="why nothing is published; null where it is")
    attributes: tuple[AttributeHistogram, ...]
    late: int | None = Field(
        None,
        description="late reports that came since the period before was closed, noised; null where suppressed, and "
        "unless the survey has presence_epsilon: the live result has the exact numbers otherwise",
    )
    presence_only: GapCounts | None = Field(
        None,
        description="reports that answered nothing; null unless the survey has one_in, or if anything is suppressed",
    )
    integrity: Integrity | None = Field(
        None,
        description="whether the counts can have come from honest devices; null while provisional, where suppressed, "
        "and where the survey has presence_epsilon",
    )
    guarantees: PublishedGuarantees
    pieces: Pieces = ()

    def attribute(self, name: str) -> AttributeHistogram:
        return next(attribute for attribute in self.attributes if attribute.name == name)


class Live(_Result):
    """The status of a survey: provisional histograms of its open periods, and the rows refused so far."""

    schema_version: int = Field(7, description="of this shape; a reader refuses one that is newer than it knows")
    survey: str
    closed_through: int = Field(description="the last period closed in every partition; -1: none")
    open: tuple[Histogram, ...] = Field(description="provisional; none if the survey has presence_epsilon")
    rejects: dict[str, int] = Field(description="rows refused, by reason; none if the survey has presence_epsilon")
    lates: dict[int, int] = Field(
        description="late rows, by period: reports that its windows may lack; none if the survey has presence_epsilon"
    )
    lost: tuple[Loss, ...] = Field(
        (),
        description="reports lost with records of the log: first and last period, and how many of them together at "
        "most; none if the survey has presence_epsilon",
    )
    pieces: Pieces = ()


def build_histogram(
    kind: Kind, scheme: Scheme, period: int, counts: Counts | Release, integrity: Integrity | None = None
) -> Histogram:
    """The histogram of a period, from its counts or, where the survey has noise on presence, from its release."""
    return histogram_of(kind, scheme, period, PeriodAnswers.of(scheme, counts), integrity)


def histogram_of(
    kind: Kind, scheme: Scheme, period: int, known: PeriodAnswers, integrity: Integrity | None = None
) -> Histogram:
    """The same from answers: what is estimated for it stays with them."""
    survey, of_all, answers, total = scheme.survey, known.counted, known.answers, known.total
    attributes = tuple(_attribute(q, answers, of_all[q.name].published, survey.minimum) for q in scheme.questions)
    begin, end = survey.bounds(period)
    silent = of_all.get(PRESENCE_ONLY)
    few = total < survey.minimum
    return Histogram(
        kind=kind,
        survey=survey.id,
        fingerprint=scheme.fingerprint,
        period=period,
        begin=begin,
        end=end,
        n=None if few else total,
        suppressed="minimum" if few else None,
        attributes=attributes,
        late=None if few else known.late,
        presence_only=None if silent is None or any(a.suppressed for a in attributes) else silent.published,
        integrity=integrity,
        guarantees=published_guarantees(scheme),
    )


@dataclass(frozen=True, eq=False)
class PeriodAnswers:
    """What is known about a period: the counts of each attribute, its answers by question, and all its reports."""

    counted: Mapping[str, Counted]
    answers: Mapping[str, Answers]
    total: int
    late: int | None

    @staticmethod
    def of(scheme: Scheme, counts: Counts | Release) -> PeriodAnswers:
        """From its counts or, where the survey has noise on presence, from its release."""
        if isinstance(counts, Release):
            of_all, late = {name: _noised(counts, name) for name in counts.n}, counts.late
        else:
            of_all, late = {name: _exact(found) for name, found in counts.items()}, None
        sizes = {name: max(0, found.n) for name, found in of_all.items()}
        total = sum(sizes[kind] for kind in scheme.kinds)
        visitors = exact(np.array(total))
        answers = {
            q.name: Answers(q.channel, sizes[q.name], of_all[q.name].supports, visitors, CellNoise.of(scheme, q.name))
            for q in scheme.questions
        }
        return PeriodAnswers(of_all, answers, total, late)


class Counted(NamedTuple):
    """What is known about one attribute: all answers (with noise it may be negative), supports, and both by gap."""

    n: int
    supports: NDArray[np.int64]
    published: GapCounts


def _exact(statistics: Statistics) -> Counted:
    by_gap = GapCounts(
        gaps=statistics.gaps,
        n=statistics.n,
        supports=statistics.N if statistics.N.shape[1] else None,
        widths=statistics.widths if len(statistics.widths) else None,
    )
    return Counted(statistics.total, statistics.supports, by_gap)


def _noised(released: Release, name: str) -> Counted:
    n, N = released.n[name], released.N[name]
    gaps = np.arange(1, len(n) + 1)
    by_gap = GapCounts(gaps=gaps, n=n, supports=None, supports_of_all_gaps=N if len(N) else None)
    return Counted(int(n.sum()), N, by_gap)


def _attribute(
    question: Question, answers: Mapping[str, Answers], by_gap: GapCounts, minimum: int
) -> AttributeHistogram:
    own = answers[question.name]
    asked: dict[str, Any] = {
        "name": question.name,
        "mechanism": question.label,
        "values": question.attribute.values,
        "axes": axes_of(question),
    }
    if own.n < minimum:
        return AttributeHistogram(**asked, n=None, suppressed="minimum")
    if own.n == 0:
        return AttributeHistogram(**asked, n=own.n, suppressed=None, statistics=by_gap)
    # The population is all who reported. If a report answers one attribute or none, its answers are a sample of them.
    shares = own.shown
    margins = [answers[axis.name] for axis in question.axes]
    known = [margin if margin.n >= max(minimum, 1) else None for margin in margins]
    return AttributeHistogram(
        **asked,
        n=own.n,
        suppressed=None,
        estimate=shares.value,
        error=shares.error,
        low=shares.low,
        high=shares.high,
        **own.fitted(question.axes, known),
        statistics=by_gap,
    )
