"""Finding roots. SciPy takes over a second to import, so it is imported at the first use."""

from __future__ import annotations

from collections.abc import Callable


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """The argument between `low` and `high`, at which `function` has opposite signs, where it is zero.

    >>> round(root(lambda x: x * x - 2, 0, 2), 12)
    1.414213562373
    """
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-16, rtol=1e-15))
