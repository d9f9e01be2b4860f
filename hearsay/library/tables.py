"""The columns of tables of histograms, and published histograms as such a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from stream_app.results import Histogram

MOMENT = pa.timestamp("us", tz="UTC")
FIGURES = ("estimate", "error", "low", "high", "consistent")
ESTIMATES = pa.schema(
    [("attribute", pa.string()), ("value", pa.string()), ("n", pa.int64()), *((name, pa.float64()) for name in FIGURES)]
)
HISTOGRAMS = pa.schema([("period", pa.int64()), ("begin", MOMENT), ("end", MOMENT), *ESTIMATES])


def histograms_table(histograms: Iterable[Histogram]) -> pa.Table:
    """One row for each period, attribute and value; nulls where nothing was published."""
    return pa.Table.from_pylist([row for result in histograms for row in _rows(result)], schema=HISTOGRAMS)


def _rows(result: Histogram) -> list[dict[str, Any]]:
    rows = []
    for attribute in result.attributes:
        figures = {name: getattr(attribute, name) for name in FIGURES}
        for place, value in enumerate(attribute.values):
            rows.append(
                {
                    "period": result.period,
                    "begin": result.begin,
                    "end": result.end,
                    "attribute": attribute.name,
                    "value": value,
                    "n": attribute.n,
                    **{name: None if figure is None else figure[place] for name, figure in figures.items()},
                }
            )
    return rows
