"""Published histograms as an Arrow table, beside the tables of mobility reports in `analytics.mobility`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import pyarrow as pa

from analytics.mobility import Part
from views.results.histogram import AttributeHistogram, Histogram

_TIME = pa.timestamp("us", tz="UTC")
_NUMBERS = (
    "estimate",
    "error",
    "low",
    "high",
    "consistent",
    "consistent_low",
    "consistent_high",
    "adjusted",
    "adjusted_error",
    "adjusted_low",
    "adjusted_high",
)
COLUMNS = pa.schema(
    [
        ("period", pa.int64()),
        ("begin", _TIME),
        ("end", _TIME),
        ("attribute", pa.string()),
        ("value", pa.string()),
        ("row", pa.string()),
        ("column", pa.string()),
        ("n", pa.int64()),
        *((name, pa.float64()) for name in _NUMBERS),
        ("suppressed", pa.string()),
        ("kind", pa.string()),
    ]
)


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
    once = {
        **{name: getattr(histogram, name) for name in ("period", "begin", "end", "kind")},
        **{name: getattr(attribute, name) for name in ("n", "suppressed")},
        "attribute": attribute.name,
    }
    columns: dict[str, Any] = {
        "value": attribute.values,
        **_pairs(attribute),
        **{name: getattr(attribute, name) for name in _NUMBERS},
    }
    found = {
        field.name: pa.scalar(once.get(field.name), field.type)
        if columns.get(field.name) is None
        else pa.array(columns[field.name], field.type, from_pandas=True)
        for field in COLUMNS
    }
    return Part(len(attribute.values), found)


def _pairs(attribute: AttributeHistogram) -> dict[str, list[str]]:
    if not attribute.axes:
        return {}
    pairs = list(product(*(axis.values for axis in attribute.axes)))
    return {"row": [row for row, _ in pairs], "column": [column for _, column in pairs]}
