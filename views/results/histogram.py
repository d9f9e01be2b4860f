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

    schema_version: int = 6
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
