"""The truncated geometric mechanism for counts, once and with a memo: what it protects is distance."""

from __future__ import annotations

import numpy as np

from protocols.encodings import Direct
from protocols.mechanisms.base import Budget, Mechanism
from protocols.roots import root
from protocols.rounds import Blur, geometric


def build_geometric(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    return Mechanism("geometric", Direct(k), geometric(k, budget.inf))


def build_l_geometric(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Two truncated geometrics; the second makes neighbouring values differ by exactly b in one report."""
    assert budget.one is not None
    first, target = geometric(k, budget.inf), budget.one
    eps2 = root(lambda e: neighbour_loss(first.then(geometric(k, e))) - target, 1e-9, 60.0)
    return Mechanism("l-geometric", Direct(k), first, geometric(k, eps2))


def neighbour_loss(blur: Blur) -> float:
    """The worst log-ratio between two neighbouring values.

    >>> round(neighbour_loss(geometric(5, 0.7)), 9)
    0.7
    """
    return float(np.abs(np.diff(np.log(blur.matrix), axis=0)).max())
