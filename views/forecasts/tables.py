"""Published forecasts as an Arrow table: one row for each name and period ahead."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from protocols.survey import Survey
from views.forecasts.model import ForecastResult, ForecastTable

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


def forecast_table(result: ForecastResult, survey: Survey) -> pa.Table:
    """The rows of a forecast; none of what is suppressed. `ahead` is 1 for the first period after the last known one.

    `begin` and `end` are those of the period that is forecast. `unexpected` is about the newest publication of a name.
    """
    return pa.concat_tables([COLUMNS.empty_table(), *(_rows(table, result.period, survey) for table in result.tables)])


def _rows(table: ForecastTable, period: int, survey: Survey) -> pa.Table:
    if table.mean is None:
        return COLUMNS.empty_table()
    steps, names = table.mean.shape
    bounds = [survey.bounds(period + step) for step in range(1, steps + 1)]
    numbers = {"mean": table.mean}
    for interval in _INTERVALS:
        found = getattr(table, interval)
        numbers |= {f"{interval}_low": found.low, f"{interval}_high": found.high}
    columns = {
        "begin": [begin for begin, _ in bounds for _ in range(names)],
        "end": [end for _, end in bounds for _ in range(names)],
        "ahead": np.repeat(np.arange(1, steps + 1), names),
        "kind": [table.kind] * (steps * names),
        "attribute": [table.attribute] * (steps * names),
        "name": table.names * steps,
        "unexpected": [name in table.unexpected for name in table.names] * steps,
        **{name: column.ravel() for name, column in numbers.items()},
    }
    return pa.table([pa.array(columns[field.name], field.type, from_pandas=True) for field in COLUMNS], schema=COLUMNS)
