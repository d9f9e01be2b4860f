"""Calibrating noise on places: masses that use the whole rate of an area, and second rounds that use that of a report.

Everything that ends up in a survey's terms is computed with the basic operations in a fixed order, or is the result of
a few bisections whose comparisons are far from equal: all machines find the same.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.law import MOST_RATE
from protocols.mechanisms.places.rounds import PlaceRound
from protocols.mechanisms.places.weighing import UNIT, WeighedRound, by_distance

SLOPES = 20  # bisections: the slope is the largest possible up to 2^-21 of the rate
SECONDS = 8  # bisections of the rate of a second round
SPARE = 1 - 1e-9  # of a promise: sums of positive floats are off by less
_SLACK = 1 - 2**-20  # of a rate: what the rounding of masses may cost


@lru_cache(maxsize=64)
def weighed(area: Area, rate: float) -> WeighedRound:
    """The noise of an area at which a cell side costs `rate`.

    The masses that make all sums equal are those of the tight mechanism. Where some would be negative, it does not
    exist: these are 0, and the slope is the largest one that keeps the rate (the exponential mechanism, with weights).

    >>> noise = weighed(Area(4, 1), 0.7)
    >>> noise.matrix[0].round(4).tolist(), is_tight(noise)
    ([0.6682, 0.167, 0.0829, 0.0818], True)
    >>> is_tight(weighed(Area(12, 12), 0.5)), is_tight(weighed(Area(12, 12), 1.0))
    (False, True)
    """
    masses = np.maximum(np.rint(even_masses(_kernel(area, rate * _SLACK)) * UNIT), 0)
    low, high = rate / 2, rate
    for step in range(SLOPES):
        middle = rate * _SLACK if step == 0 else (low + high) / 2
        low, high = (middle, high) if cost(area, middle, masses) <= rate * SPARE else (low, middle)
    return WeighedRound(area, low, tuple(int(mass) for mass in masses), rate)


def is_tight(noise: WeighedRound) -> bool:
    """Whether every cell side costs what weights fall by; otherwise it is the exponential mechanism."""
    return noise.slope >= noise.rate * (1 - 1e-5)


def cost(area: Area, slope: float, masses: Floats) -> float:
    """What a cell side costs if weights fall by `slope` over it: see `weighing`."""
    sums = np.log((_kernel(area, slope) * masses).sum(axis=1))
    apart = np.abs(sums[:, None] - sums) / (area.distances + np.eye(area.k))
    return slope + float(apart.max())


def even_masses(kernel: Floats) -> Floats:
    """The masses for which all rows of a symmetric kernel have the sum 1, by elimination.

    >>> masses = even_masses(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> masses.round(12).tolist()
    [0.666666666667, 0.666666666667]
    """
    left = np.concatenate([kernel, np.ones((len(kernel), 1))], axis=1)
    for step in range(len(left)):
        factors = left[step + 1 :, step] / left[step, step]
        left[step + 1 :, step:] -= factors[:, None] * left[step, step:]
    masses = left[:, -1].copy()
    for step in reversed(range(len(left))):
        masses[step] /= left[step, step]
        masses[:step] -= left[:step, step] * masses[step]
    return masses


def _kernel(area: Area, slope: float) -> Floats:
    mantissa, power, place = by_distance(area, slope)
    return np.asarray(np.ldexp(mantissa, -power.astype(np.int64))[place])


def largest_second(first: PlaceRound, one: float, make: Callable[[float], PlaceRound]) -> float:
    """The largest rate of a second round with which one report keeps `one`, up to a 250th part; all are enumerated."""

    def keeps(rate: float) -> bool:
        return composed(first, make(rate)) <= one * SPARE

    low = one
    while not keeps(low):
        low /= 2  # ends: a report is never worth more than its own rate times the widest distance
    high = 2 * low
    while high < MOST_RATE and keeps(high):
        low, high = high, 2 * high
    for _ in range(SECONDS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def composed(first: PlaceRound, second: PlaceRound) -> float:
    """What a cell side costs in one report of both rounds: the largest over any two cells and all reports.

    >>> from protocols.mechanisms.places.displacement import PlanarRound
    >>> round(composed(PlanarRound(8, 6, 1.0), PlanarRound(8, 6, 0.5)), 4)
    0.4433
    """
    logs, worst = np.log(first.matrix @ second.matrix), 0.0
    apart = first.area.distances + np.diag(np.full(first.cells, np.inf))
    room = np.empty_like(logs)
    for cell, far in enumerate(apart):
        np.subtract(logs, logs[cell], out=room)
        worst = max(worst, float((room.max(axis=1) / far).max()))
    return worst
