"""Histograms and live results. A final depends on the survey and its reports, not on partitions, offsets or time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from analytics.columns import Column, CountColumn, CountColumns
from analytics.estimation import (
    ConsistentShares,
    consistent_shares,
    estimate,
    norm_sub,
    rounded,
    shortened,
    shortened_consistent,
)
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.scheme import PRESENCE_ONLY, Scheme
from stream_app.counting.counters import Counts, Statistics
from stream_app.results.guarantees import PublishedGuarantees, published_guarantees
from stream_app.results.presence_noise import presence_counts

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
    n: CountColumn = Field(description="reports with each gap; noised where the survey has presence_epsilon")
    supports: CountColumns | None = Field(
        description="reports with each gap that support each value; null where the survey has presence_epsilon, and of "
        "presence-only reports"
    )


class AttributeHistogram(_Result):
    """How often each value of one attribute occurs, among those who reported."""

    name: str
    mechanism: str
    values: tuple[str, ...]
    n: int | None = Field(description="reports that answered this attribute; null where suppressed")
    suppressed: Suppression | None = Field(description="why nothing is published; null where it is")
    estimate: Column | None = Field(None, description="unbiased; may be negative, need not sum to 1")
    error: Column | None = Field(None, description="standard errors of the estimates")
    low: Column | None = Field(None, description="lower ends of the 95 % intervals")
    high: Column | None = Field(None, description="upper ends of the 95 % intervals")
    consistent: Column | None = Field(
        None, description="a histogram that sums to 1: smoothed for ordered mechanisms, otherwise the nearest one"
    )
    consistent_low: Column | None = Field(
        None,
        description="lower ends of intervals for `consistent`: 95 % on average over the values, not for each; "
        "null unless the mechanism is ordered, and where the survey has presence_epsilon",
    )
    consistent_high: Column | None = Field(None, description="upper ends of the same intervals")
    statistics: GapCounts | None = None


class Histogram(_Result):
    """The result of one period of one survey."""

    schema_version: int = Field(2, description="of this shape; a reader refuses one that is newer than it knows")
    kind: Kind
    survey: str
    fingerprint: str
    period: int
    begin: datetime
    end: datetime
    n: int | None = Field(description="reports counted; null where suppressed")
    suppressed: Suppression | None = Field(description="why nothing is published; null where it is")
    attributes: tuple[AttributeHistogram, ...]
    presence_only: GapCounts | None = Field(
        None,
        description="reports that answered nothing; null unless the survey has one_in, or if anything is suppressed",
    )
    guarantees: PublishedGuarantees
    pieces: Pieces = ()

    def attribute(self, name: str) -> AttributeHistogram:
        return next(attribute for attribute in self.attributes if attribute.name == name)


class Live(_Result):
    """The status of a survey: provisional histograms of its open periods, and the rows refused so far."""

    schema_version: int = Field(2, description="of this shape; a reader refuses one that is newer than it knows")
    survey: str
    closed_through: int = Field(description="the last period closed in every partition; -1: none")
    open: tuple[Histogram, ...] = Field(description="provisional; none if the survey has presence_epsilon")
    rejects: dict[str, int] = Field(description="rows refused, by reason")
    lates: dict[int, int] = Field(description="late rows, by period: reports that its windows may lack")
    pieces: Pieces = ()


def build_histogram(kind: Kind, scheme: Scheme, period: int, counts: Counts, keyring: Keyring) -> Histogram:
    """The histogram of some counts. `keyring` derives the noise on presence, if the survey has it."""
    survey = scheme.survey
    if survey.presence_epsilon is None:
        published = {name: _exact(statistics) for name, statistics in counts.items()}
    else:
        presence = presence_counts(counts, scheme, period, keyring)
        published = {name: _noised(presence[name]) for name in counts}
    sizes = {name: max(0, int(public.n.sum())) for name, public in published.items()}
    total = sum(sizes[kind] for kind in scheme.kinds)
    attributes = tuple(
        _attribute(q, counts[q.name], published[q.name], sizes[q.name], total, survey.minimum) for q in scheme.questions
    )
    begin, end = survey.bounds(period)
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
        presence_only=None if any(a.suppressed for a in attributes) else published.get(PRESENCE_ONLY),
        guarantees=published_guarantees(scheme),
    )


def _exact(statistics: Statistics) -> GapCounts:
    supports = statistics.N if statistics.N.shape[1] else None
    return GapCounts(gaps=statistics.gaps, n=statistics.n, supports=supports)


def _noised(presence: NDArray[np.int64]) -> GapCounts:
    return GapCounts(gaps=np.arange(1, len(presence) + 1), n=presence, supports=None)


def _attribute(
    question: Question, statistics: Statistics, published: GapCounts, n: int, total: int, minimum: int
) -> AttributeHistogram:
    few = n < minimum
    asked: dict[str, Any] = {"name": question.name, "mechanism": question.label, "values": question.attribute.values}
    if few:
        return AttributeHistogram(**asked, n=None, suppressed="minimum")
    if n == 0 or statistics.total == 0:
        return AttributeHistogram(**asked, n=n, suppressed=None, statistics=published)
    # The population is all who reported. If a report answers one attribute or none, its answers are a sample of them.
    frequencies = statistics.supports / statistics.total
    estimates = estimate(frequencies * n, n, question.channel, population=total)
    if published.supports is None:
        estimates = rounded(estimates)
        consistent = ConsistentShares(norm_sub(estimates.value))
    else:
        consistent = consistent_shares(statistics.supports, n, question.channel)
    shares, consistent = shortened(estimates), shortened_consistent(consistent, estimates.error)
    return AttributeHistogram(
        **asked,
        n=n,
        suppressed=None,
        estimate=shares.value,
        error=shares.error,
        low=shares.low,
        high=shares.high,
        consistent=consistent.value,
        consistent_low=consistent.low,
        consistent_high=consistent.high,
        statistics=published,
    )
