"""Published histograms as an Arrow table, beside the tables of mobility reports in `analytics.mobility`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from stream_app.results.histograms import AttributeHistogram, Histogram

_TIME = pa.timestamp("us", tz="UTC")
_NUMBERS = ("estimate", "error", "low", "high", "consistent", "consistent_low", "consistent_high")
COLUMNS = pa.schema(
    [
        ("period", pa.int64()),
        ("begin", _TIME),
        ("end", _TIME),
        ("attribute", pa.string()),
        ("value", pa.string()),
        ("n", pa.int64()),
        *((name, pa.float64()) for name in _NUMBERS),
        ("suppressed", pa.string()),
        ("kind", pa.string()),
    ]
)


def histogram_table(histograms: Iterable[Histogram]) -> pa.Table:
    """One row for each period, attribute and value; null where a histogram has no number.

    `n` is the number of reports that answered the attribute. Histograms may be final or provisional: `kind` says which.
    """
    rows = [
        row for histogram in histograms for attribute in histogram.attributes for row in _rows(histogram, attribute)
    ]
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def _rows(histogram: Histogram, attribute: AttributeHistogram) -> Iterator[dict[str, Any]]:
    unknown = (None,) * len(attribute.values)
    columns = [getattr(attribute, name) or unknown for name in _NUMBERS]
    for value, *numbers in zip(attribute.values, *columns, strict=True):
        yield {
            "period": histogram.period,
            "begin": histogram.begin,
            "end": histogram.end,
            "attribute": attribute.name,
            "value": value,
            "n": attribute.n,
            **dict(zip(_NUMBERS, numbers, strict=True)),
            "suppressed": attribute.suppressed,
            "kind": histogram.kind,
        }
