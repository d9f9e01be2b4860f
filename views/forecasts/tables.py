"""Published forecasts as an Arrow table: one row for each name and period ahead."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from analytics.mobility import Part
from protocols.arrays import Floats
from protocols.survey import Survey
from views.forecasts.model import ForecastResult, ForecastTable
from views.results.tables import part_of

_TIME = pa.timestamp("us", tz="UTC")
_INTERVALS = ("truth_80", "truth_95", "publication_80", "publication_95")
COLUMNS = pa.schema(
    [
        ("begin", _TIME),
        ("end", _TIME),
        ("ahead", pa.int64()),
        ("kind", pa.string()),
        ("attribute", pa.string()),
        ("name", pa.string()),
        ("mean", pa.float64()),
        *((f"{interval}_{end}", pa.float64()) for interval in _INTERVALS for end in ("low", "high")),
        ("unexpected", pa.bool_()),
    ]
)


def forecast_parts(result: ForecastResult, survey: Survey) -> Iterator[Part]:
    """The rows of a forecast, whose period is the last one that it knows; none of what is suppressed.

    The period that is forecast comes `ahead` periods after it, from `begin` to `end`. `unexpected` is about the newest
    publication of a name.
    """
    yield Part.without_rows(COLUMNS)
    for table in result.tables:
        if table.mean is not None:
            yield _part(table, table.mean, result.period, survey)


def _part(table: ForecastTable, mean: Floats, period: int, survey: Survey) -> Part:
    steps, names = mean.shape
    bounds = [survey.bounds(period + step) for step in range(1, steps + 1)]
    numbers = {"mean": mean}
    for interval in _INTERVALS:
        found = getattr(table, interval)
        numbers |= {f"{interval}_low": found.low, f"{interval}_high": found.high}
    entries = {
        "begin": [begin for begin, _ in bounds for _ in range(names)],
        "end": [end for _, end in bounds for _ in range(names)],
        "ahead": np.repeat(np.arange(1, steps + 1), names),
        "kind": table.kind,
        "attribute": table.attribute,
        "name": table.names * steps,
        "unexpected": [name in table.unexpected for name in table.names] * steps,
        **{name: column.ravel() for name, column in numbers.items()},
    }
    return part_of(COLUMNS, steps * names, entries)
