"""What noise on places reveals, per cell side of distance, and how far it moves a place (PROTOCOLS 10)."""

from __future__ import annotations

from math import hypot, inf

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.mechanisms.places.displacement import PlanarRound
from protocols.mechanisms.places.law import ANYWHERE, WORD
from protocols.mechanisms.rounds import Round


def rate_after(first: Round, second: Round | None, t: float = 1) -> float:
    """What one cell side of distance costs, at most, after t linked reports from one memo; infinity: for ever.

    Given the memo, t reports cost t times the second rate; and never more than the memo itself.

    >>> memo, fresh = PlanarRound(9, 9, 2.0), PlanarRound(9, 9, 0.7)
    >>> [rate_after(memo, fresh, t) for t in (1, 2, 10)], rate_after(memo, None)
    ([0.7, 1.4, 2.0], 2.0)
    """
    assert isinstance(first, PlanarRound) and (second is None or isinstance(second, PlanarRound))
    return first.rate if second is None or t == inf else min(first.rate, t * second.rate)


def widest(noise: PlanarRound) -> float:
    """The largest distance on its grid, in cell sides."""
    return hypot(noise.columns - 1, noise.rows - 1)


def best_guesses(noise: PlanarRound) -> float:
    """The sum over all reports of the largest chance that any cell gives them: each is likeliest from its own cell.

    >>> noise = PlanarRound(5, 4, 0.8)
    >>> bool(abs(best_guesses(noise) - noise.matrix.max(axis=0).sum()) < 1e-9)
    True
    """
    law, rows, columns = noise.chances, noise.rows, noise.columns
    stays = law[rows - 1, columns - 1]
    edge_rows, edge_columns = law[rows - 1 :, columns - 1].sum(), law[rows - 1, columns - 1 :].sum()
    corner = law[rows - 1 :, columns - 1 :].sum()
    inside = (rows - 2) * (columns - 2) * stays
    edges = 2 * (columns - 2) * edge_rows + 2 * (rows - 2) * edge_columns
    return float(inside + edges + 4 * corner + noise.cells * ANYWHERE / WORD)


def moved(law: Floats) -> tuple[Floats, Floats]:
    """How far a law of displacements moves: distances in cell sides, ascending, and their chances.

    >>> far, chances = moved(PlanarRound(199, 199, 0.2).chances)
    >>> round(float(far @ chances), 1), round(float(far**2 @ chances))
    (10.0, 150)
    """
    up, across = (np.arange(size) - size // 2 for size in law.shape)
    far, place = np.unique((up[:, None] ** 2 + across**2).ravel(), return_inverse=True)
    return np.sqrt(far), np.asarray(np.bincount(place, law.ravel()), dtype=np.float64)
