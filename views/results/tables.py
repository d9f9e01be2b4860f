"""Published histograms as an Arrow table, beside the tables of mobility reports in `analytics.mobility`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.mobility import Part
from views.results.histogram import AttributeHistogram, Histogram

_TIME = pa.timestamp("us", tz="UTC")
_NUMBERS = ("estimate", "error", "low", "high", "consistent", "consistent_low", "consistent_high")
_ADJUSTED = ("adjusted", "adjusted_error", "adjusted_low", "adjusted_high")
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
        *((name, pa.float64()) for name in _NUMBERS + _ADJUSTED),
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
    entries = {
        **{name: getattr(histogram, name) for name in ("period", "begin", "end", "kind")},
        **{name: getattr(attribute, name) for name in ("n", "suppressed", *_NUMBERS, *_ADJUSTED)},
        "attribute": attribute.name,
        "value": attribute.values,
        **_pairs(attribute),
    }
    return part_of(COLUMNS, len(attribute.values), entries)


def part_of(schema: pa.Schema, rows: int, entries: Mapping[str, Any]) -> Part:
    """Some rows: of each column a sequence with their entries, or the entry that all of them have."""
    columns = {}
    for field in schema:
        entry = entries.get(field.name)
        several = isinstance(entry, list | tuple | np.ndarray)
        columns[field.name] = pa.array(entry, field.type, from_pandas=True) if several else pa.scalar(entry, field.type)
    return Part(rows, columns)


def _pairs(attribute: AttributeHistogram) -> dict[str, list[str]]:
    if not attribute.axes:
        return {}
    pairs = list(product(*(axis.values for axis in attribute.axes)))
    return {"row": [row for row, _ in pairs], "column": [column for _, column in pairs]}
