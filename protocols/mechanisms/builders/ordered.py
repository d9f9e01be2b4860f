"""The truncated geometric mechanism for ordered values, once and with a memo: it protects by distance."""

from __future__ import annotations

import numpy as np

from protocols.mechanisms.encodings import Direct
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.record import MechanismRecord
from protocols.mechanisms.rounds import end_evidence, geometric

MAX_MATRIX = 1024  # values for which the whole matrix is computed and inverted


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


GEOMETRIC = MechanismRecord(
    "geometric",
    "truncated geometric noise: near numbers are confused, far ones less",
    one_round=build_geometric,
    needs_order=True,
    max_values=MAX_MATRIX,
)
L_GEOMETRIC = MechanismRecord(
    "l-geometric",
    "geometric of a memoised geometric",
    two_rounds=build_l_geometric,
    needs_order=True,
    max_values=MAX_MATRIX,
)
