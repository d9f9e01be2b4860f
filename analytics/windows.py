"""Unique devices of every window, without identifying any (PROTOCOLS 7).

A report of period t is its device's first in the window [s..e] exactly when its gap is at least t - s + 1. So with
counters by period and gap, every window up to the horizon is a sum. Counters have the shape

    n[period, gap - 1]           reports                gaps 1 .. horizon; the last means "horizon or more, or never"
    N[period, gap - 1, value]    reports that support each value

and whatever dimensions follow are carried along, so devices and histograms of devices take the same path.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Counters = NDArray[Any]


def first_reports(counters: Counters, start: int, length: int) -> Counters:
    """The sum over each device's first report in one window: its unique devices, or their histogram.

    Device 1 reports in periods 0 and 1, device 2 in period 1 only:

    >>> n = np.array([[0, 1], [1, 1]])
    >>> int(first_reports(n, 0, 2)), int(first_reports(n, 1, 1))
    (2, 2)
    """
    horizon = counters.shape[1]
    if not 1 <= length <= horizon:
        raise ValueError(f"a window of {length} periods; the horizon allows 1 to {horizon}")
    if not 0 <= start <= len(counters) - length:
        raise ValueError(f"periods {start} to {start + length - 1}; counters have 0 to {len(counters) - 1}")
    return np.asarray(sum(counters[start + j, j:].sum(axis=0) for j in range(length)))


def all_windows(counters: Counters) -> Counters:
    """Every window at once: `[start, length - 1]`. Windows that end after the last period are 0.

    >>> all_windows(np.array([[0, 1], [1, 1]])).tolist()
    [[1, 2], [2, 0]]
    """
    periods, horizon = counters.shape[:2]
    at_least = np.flip(np.cumsum(np.flip(counters, axis=1), axis=1), axis=1)  # [t, g - 1]: gap g or more
    starts, later = np.indices((periods, horizon))
    inside = (starts + later < periods).reshape(periods, horizon, *(1,) * (counters.ndim - 2))
    diagonal = at_least[np.minimum(starts + later, periods - 1), later]
    return np.asarray(np.cumsum(diagonal, axis=1) * inside)
