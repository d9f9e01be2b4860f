"""Finals as series: what a published histogram says about each cell, and how much of its variance is which noise.

The only place where forecasts touch published histograms. A cell is the visitors, a value, or a group of values.
Numbers are people, and unbiased: never the consistent histogram.

    fresh   the second round of noise, and noise on presence: new in every period
    memo    the first round, and which part of the visitors was asked: it stays while devices keep their memos
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from analytics.estimation import CellNoise, estimate, norm_sub
from protocols.arrays import Floats, Mask
from protocols.mechanisms import Channel
from protocols.privacy import REPORTS, geometric_variance
from protocols.question import Question
from protocols.scheme import Scheme
from views.forecasts.model import Kind
from views.results.histogram import AttributeHistogram, Histogram


class Cell(NamedTuple):
    """What a series is about: the visitors (no attribute), a value of an attribute, or a group of its values."""

    kind: Kind
    attribute: str | None
    value: str

    def __str__(self) -> str:
        return f"{self.attribute}={self.value}" if self.attribute else self.value


def cells(scheme: Scheme) -> tuple[Cell, ...]:
    """The visitors, and every value and group of every attribute; of places only the groups."""
    found = [Cell("visitors", None, "visitors")]
    for question in scheme.questions:
        if not question.attribute.placed:
            found += [Cell("values", question.name, value) for value in question.items.values]
        found += [Cell("groups", question.name, group) for group in question.attribute.groups]
    return tuple(found)


def observe(scheme: Scheme, histogram: Histogram) -> Floats:
    """What a final says about every cell, `[part, cell]`, in the order of `cells`; NaN where nothing is published.

    Parts are values, and variances of fresh noise and of memos.
    """
    parts = np.full((3, len(cells(scheme))), np.nan)
    if histogram.n is not None:
        scale = None if scheme.presence is None else scheme.presence.scales.get(REPORTS)
        presence = 0.0 if scale is None else geometric_variance(scale)
        parts[:, 0] = histogram.n, presence, 0
        first = 1
        for question in scheme.questions:
            width = (0 if question.attribute.placed else question.items.k) + len(question.attribute.groups)
            published = histogram.attribute(question.name)
            if published.estimate is not None and width:
                parts[:, first : first + width] = _people(scheme, question, published, histogram.n, presence)
            first += width
    return parts


def observed_series(scheme: Scheme, histograms: Iterable[Histogram]) -> tuple[int, Floats]:
    """The first period, and `[part, cell, period]`: values, fresh and memo variances. Periods without final are NaN."""
    found = {histogram.period: observe(scheme, histogram) for histogram in histograms}
    first, last = min(found, default=0), max(found, default=-1)
    table = np.full((3, len(cells(scheme)), last - first + 1), np.nan)
    for period, parts in found.items():
        table[:, :, period - first] = parts
    return first, table


def _people(scheme: Scheme, question: Question, published: AttributeHistogram, total: int, presence: float) -> Floats:
    """`[part, cell]`: the values of an attribute, then its groups. NaN where nobody was asked about a value."""
    items, n = question.items.k, published.n or 0
    shares = np.pad(np.array(published.estimate), (0, question.k - items))  # no variance depends on paddings of sets
    guessed = np.nan_to_num(shares, nan=0.0)  # of values without a share: they have no variance either, below
    likely = np.clip(guessed, 0, 1) if question.several > 1 else norm_sub(guessed)
    members: list[Mask | None] = [] if question.attribute.placed else [None]
    if question.attribute.groups:
        members.append(question.members)
    parts = []
    for member in members:
        combined = shares if member is None else shares @ member.T
        fresh, memo = share_variances(scheme, question, likely, n, total, member)
        fresh = fresh * total**2 + combined**2 * (presence if n < total else 0.0)  # else it is in the shares' own
        found = np.stack([combined * total, fresh, memo * total**2])
        found[:, np.isnan(combined)] = np.nan
        parts.append(found[:, : items if member is None else None])
    return np.concatenate(parts, axis=1)


def share_variances(
    scheme: Scheme, question: Question, shares: Floats, n: int, total: int, members: Mask | None
) -> tuple[Floats, Floats]:
    """Of estimates of all values, or of groups of them: the variances of fresh noise, and of memos.

    `shares` are those that are true, or likely. `n` of all who reported (`total`) have answered.
    """
    whole = _variance(question.channel, shares, n, total, members, CellNoise.of(scheme, question.name))
    if scheme.survey.longitudinal:
        memo = np.minimum(_variance(question.memo_channel, shares, n, total, members), whole)
    else:  # which of the visitors were asked stays the same, if anything does
        expected = np.clip(shares if members is None else shares @ members.T, 0, 1)
        answering = n * scheme.survey.one_in  # those whose turn it is change from period to period
        asked = 0.0 if answering >= total else (total - answering) / max(total - 1, 1) / answering
        memo = np.minimum(expected * (1 - expected) * asked, whole)
    return whole - memo, memo


def _variance(
    channel: Channel, shares: Floats, n: int, total: int, members: Mask | None, noise: CellNoise | None = None
) -> Floats:
    """The variance of estimates of all values, or of groups of them, if these are the true shares."""
    found = estimate(channel.support(shares) * n, n, channel, population=total, groups=members, noise=noise)
    return np.asarray(found.error**2)
