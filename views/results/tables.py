"""Published histograms as an Arrow table, beside the tables of mobility reports in `analytics.mobility`."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import product

from analytics.mobility import Part
from protocols.arrays import lazy_arrow as pa
from views.results.histogram import AttributeHistogram, Histogram

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
