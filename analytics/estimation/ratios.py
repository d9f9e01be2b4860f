"""Products and ratios of estimated quantities, with intervals as asymmetric as those of their parts."""

from __future__ import annotations

import numpy as np

from analytics.estimation.estimates import Estimates


def product(left: Estimates, right: Estimates) -> Estimates:
    """Left times right, estimated independently, such as shares times visitors.

    >>> share, visitors = exact(np.array([0.25])), exact(np.array([200.0]))
    >>> product(share, visitors).value.tolist()
    [50.0]
    """
    value = left.value * right.value
    error = np.sqrt((left.error * right.value) ** 2 + (left.value * right.error) ** 2 + (left.error * right.error) ** 2)
    down = np.hypot((left.value - left.low) * right.value, left.value * (right.value - right.low))
    up = np.hypot((left.high - left.value) * right.value, left.value * (right.high - right.value))
    return Estimates(value, error, value - down, value + up)


def ratio(now: Estimates, then: Estimates) -> Estimates:
    """Now divided by then, estimated independently; NaN where `then` may be 0 or less.

    The interval recovers the variances at each end from the parts' own intervals (MOVER), so it is as asymmetric as
    they are. Where both share noise, as two periods of the same memos do, it is wider than it need be.

    >>> change = ratio(Estimates(*map(np.array, (90.0, 5.0, 80.0, 100.0))), exact(np.array(60.0)))
    >>> change.value.tolist(), change.low.round(3).tolist(), change.high.round(3).tolist()
    (1.5, 1.333, 1.667)
    """
    a, la, ua = now.value, now.low, now.high
    b, lb, ub = then.value, then.low, then.high
    with np.errstate(invalid="ignore", divide="ignore"):
        value = a / b
        error = np.hypot(now.error / b, a * then.error / b**2)
        low = (a * b - np.sqrt((a * b) ** 2 - la * ub * (2 * a - la) * (2 * b - ub))) / (ub * (2 * b - ub))
        high = (a * b + np.sqrt((a * b) ** 2 - ua * lb * (2 * a - ua) * (2 * b - lb))) / (lb * (2 * b - lb))
    known = (lb > 0) & (2 * b > ub) & np.isfinite(low) & np.isfinite(high)
    return Estimates(*(np.where(known, part, np.nan) for part in (value, error, low, high)))


def exact(value: np.ndarray) -> Estimates:
    """A quantity known exactly."""
    whole = np.asarray(value, dtype=np.float64)
    return Estimates(whole, np.zeros_like(whole), whole, whole)
