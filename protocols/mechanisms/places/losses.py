"""What noise on places reveals, per cell side of distance, and how far it moves a place (PROTOCOLS 10)."""

from __future__ import annotations

from math import inf

import numpy as np

from protocols.arrays.aliases import Floats, Whole
from protocols.mechanisms.places.displacement import PlanarRound
from protocols.mechanisms.places.rounds import PlaceRound
from protocols.mechanisms.rounds import Round


def rate_after(first: Round, second: Round | None, t: float = 1) -> float:
    """What one cell side of distance costs, at most, after t linked reports from one memo; infinity: for ever.

    It is never more than the memo costs. Where round 1 moves all cells alike, t reports cost at most t times the rate
    of round 2; elsewhere only one report is known to cost less than the memo.

    >>> memo, fresh = PlanarRound(9, 9, 2.0), PlanarRound(9, 9, 0.7, through=0.6)
    >>> [rate_after(memo, fresh, t) for t in (1, 2, 10)], rate_after(memo, None)
    ([0.6, 1.4, 2.0], 2.0)
    """
    assert isinstance(first, PlaceRound) and (second is None or isinstance(second, PlaceRound))
    if second is None or t == inf or (t > 1 and not first.carries):
        return first.rate
    return min(first.rate, second.through if t == 1 else t * second.rate)


def moved(first: Round, second: Round | None = None) -> tuple[Floats, Floats]:
    """How far reports are from their places: distances in cell sides, ascending, and their chances.

    On a whole grid as if it had no border; inside an area over all its cells alike.

    >>> far, chances = moved(PlanarRound(199, 199, 0.2))
    >>> round(float(far @ chances), 1), round(float(far**2 @ chances))
    (10.0, 150)
    """
    assert isinstance(first, PlaceRound) and (second is None or isinstance(second, PlaceRound))
    if isinstance(first, PlanarRound):
        law = first.chances
        if isinstance(second, PlanarRound):
            size = 2 * law.shape[0] - 1, 2 * law.shape[1] - 1
            law = np.fft.irfft2(np.fft.rfft2(law, size) * np.fft.rfft2(second.chances, size), size)
        up, across = (np.arange(size) - size // 2 for size in law.shape)
        return _by_distance(up[:, None] ** 2 + across**2, law)
    return _by_distance(first.area.squares, (first.matrix if second is None else first.matrix @ second.matrix))


def _by_distance(squares: Whole, chances: Floats) -> tuple[Floats, Floats]:
    far, place = np.unique(squares.ravel(), return_inverse=True)
    found = np.bincount(place, chances.ravel())
    return np.sqrt(far), np.asarray(found / found.sum(), dtype=np.float64)
