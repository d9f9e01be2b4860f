"""The busiest areas, and the probability of their order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.votes import Floats

DRAWS = 2000
RIVALS = 25  # areas below the ranking that are considered too


def rank(
    frequencies: Floats, spread: Callable[[NDArray[np.intp]], Floats], places: int
) -> tuple[NDArray[np.intp], Floats, float]:
    """The busiest areas, each one's probability of being in its place, and that of the whole ranking.

    `spread` gives the covariance of the estimates of some areas. Possible truths are drawn around the estimates with
    that covariance; a probability is the share of them that agree. The seed is fixed, so results are reproducible.

    >>> sure = lambda areas: np.eye(len(areas)) * 1e-6
    >>> order, probabilities, whole = rank(np.array([0.2, 0.5, 0.3]), sure, places=2)
    >>> order.tolist(), probabilities.tolist(), whole
    ([1, 2], [1.0, 1.0], 1.0)
    """
    order = np.argsort(-frequencies, kind="stable")
    rivals = order[: places + RIVALS]
    root = _root(spread(rivals))
    drawn = frequencies[rivals] + np.random.default_rng(0).standard_normal((DRAWS, len(rivals))) @ root.T
    ahead = [np.count_nonzero(drawn > drawn[:, [place]], axis=1) for place in range(min(places, len(rivals)))]
    right = np.stack(ahead, axis=1) == np.arange(len(ahead))
    return order[:places], right.mean(axis=0), float(right.all(axis=1).mean())


def _root(spread: Floats) -> Floats:
    """A square root of a covariance that may be singular."""
    values, vectors = np.linalg.eigh(spread)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
