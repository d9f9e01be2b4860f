"""The truncated geometric mechanism for counts, once and with a memo: what it protects is distance."""

from __future__ import annotations

import numpy as np

from protocols.mechanisms.encodings import Direct
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.rounds import end_evidence, geometric


def build_geometric(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    return Mechanism("geometric", Direct(k), geometric(k, budget.inf))


def build_l_geometric(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Two truncated geometrics; the second makes neighbouring values differ by exactly b in one report."""
    from scipy.optimize import brentq  # takes over a second to import

    assert budget.one is not None
    first, target = geometric(k, budget.inf), budget.one

    def excess(eps: float) -> float:
        return float(np.diff(end_evidence(first, geometric(k, eps))).max()) - target

    eps2 = brentq(excess, 1e-9, 60.0, xtol=1e-14)
    return Mechanism("l-geometric", Direct(k), first, geometric(k, float(eps2)))
