"""The model of a histogram: what is published of one period of one survey; and many of them as an Arrow table."""

from __future__ import annotations  # pyarrow is loaded when it is used, and not for a type

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import product
from typing import Literal

from pydantic import Field

from analytics.columns import Column, CountColumn, CountColumns, ResultModel
from analytics.integrity import Integrity
from analytics.mobility import Axis, Part, Sizes
from protocols.arrays import lazy_arrow as pa
from stream_app.finals import CentralGuarantees, PublishedGuarantees
from views.view import Pieces

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

    gaps: CountColumn = Field(
        description="the gaps that occur, ascending; every gap, where counts have noise; the first gap of each range "
        "of gaps that are counted together, where the survey has a minimum; in a survey with visitors flags instead"
        " (with a minimum all together, as 0)"
    )
    n: CountColumn = Field(
        description="reports with each gap; where the survey has presence_epsilon they have noise and may be negative"
    )
    supports: CountColumns | None = Field(
        description="reports with each gap that support each value; null where the survey has presence_epsilon or "
        "central, and of presence-only reports"
    )
    supports_of_all_gaps: CountColumn | None = Field(
        None,
        description="reports that support each value, with presence_epsilon noised; null unless the survey has "
        "presence_epsilon or central",
    )
    widths: CountColumn | None = Field(
        None,
        description="reports that support 0, 1 .. all values; null where each supports one, where the survey has "
        "presence_epsilon or central, and of presence-only reports",
    )


class AttributeHistogram(ResultModel):
    """How often each value of one attribute occurs, among those who reported."""

    name: str
    mechanism: str
    values: tuple[str, ...]
    several: int | None = Field(
        None,
        exclude_if=lambda several: several is None,  # then the shape is the same as before
        description="of sets: how many values of a device are counted. Estimates are shares of devices that have a "
        "value, which do not sum to 1. Supports also have a place for each padding, after those of values",
    )
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
    sizes: Sizes | None = Field(
        None, exclude_if=lambda sizes: sizes is None, description="of sets: how many values devices have"
    )
    statistics: GapCounts | None = None


class Histogram(ResultModel):
    """The result of one period of one survey."""

    schema_version: int = Field(
        6,
        description="of this shape; a reader refuses one that is newer than it knows; 5 where the survey has "
        "neither central nor sets: then the shape is the same as before",
    )
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
    integrity: Integrity | None = Field(
        None,
        description="whether the counts can have come from honest devices; null while provisional, where suppressed, "
        "and where the survey has presence_epsilon",
    )
    guarantees: CentralGuarantees | PublishedGuarantees
    pieces: Pieces = ()

    def attribute(self, name: str) -> AttributeHistogram:
        return next(attribute for attribute in self.attributes if attribute.name == name)


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
        **_pairs(attribute),
    }
    return Part.of(COLUMNS, len(attribute.values), entries)


def _pairs(attribute: AttributeHistogram) -> dict[str, list[str]]:
    if not attribute.axes:
        return {}
    pairs = list(product(*(axis.values for axis in attribute.axes)))
    return {"row": [row for row, _ in pairs], "column": [column for _, column in pairs]}
