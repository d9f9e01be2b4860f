"""From arrays to what is published: null for what is not known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analytics.estimation import Estimates
from analytics.mobility.model import Quantity


def quantity(measured: Estimates) -> Quantity:
    """One measured number.

    >>> quantity(Estimates(*map(np.array, (0.5, np.inf, 0.0, 1.0)))).error is None
    True
    """
    return quantities(measured[None])[0]


def quantities(measured: Estimates) -> list[Quantity]:
    """A row of measured numbers."""
    parts = np.stack([measured.value, measured.error, measured.low, measured.high], axis=1)
    told = parts.astype(object)
    told[~np.isfinite(parts)] = None
    return [Quantity(value=value, error=error, low=low, high=high) for value, error, low, high in told]


def measured(numbers: Sequence[Quantity | None]) -> Estimates:
    """Published numbers as arrays again.

    >>> measured([Quantity(value=3, error=1, low=1, high=5), None]).value.tolist()
    [3.0, nan]
    """
    parts = ("value", "error", "low", "high")
    columns = [[getattr(number, part, None) for number in numbers] for part in parts]
    return Estimates(*(np.array(column, dtype=np.float64) for column in columns))
