"""Fitting the parameters of a series by their likelihood.

Parameters are logarithms of base 2 on a grid of whole numbers, relative to a scale that is a power of two itself. The
search goes from neighbour to neighbour, with smaller and smaller steps: no randomness, no derivative, and two machines
whose logarithms differ in the last digit have the same parameters. A wide prior keeps those where they are that the
series says nothing about.

The likeliest variances are too small on the average: a variance may be much larger than the likeliest one, and never
much smaller than zero. So each is replaced by its mean over a bank of values around the likeliest, weighted as they
deserve: short and noisy series have wider intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import exp, floor, log2

import numpy as np

from analytics.forecasting.filtering import log_likelihood
from analytics.forecasting.series import Series
from analytics.forecasting.structure import DEVIATION, FIRST_HARMONIC, LEVEL, MOST_SIDES, Structure
from protocols.arrays import Floats

Point = tuple[int, ...]
"""Level, deviation, memory, irregular; then the size of each season, and how fast it drifts."""
LOWEST, HIGHEST = (-30, -30, 0, -30), (8, 8, 10, 8)
CENTRE, WIDTH = (-12, -4, 3, -4), (8, 8, 3, 8)  # the prior
START = (-14, -8, 5, -4)  # where the search begins: both level and deviation move, and the latter lasts
SIZE = (-24, 2, -3, 4)  # lowest, highest, centre and width
DRIFT = (-30, 8, -18, 8)
STEPS = (4, 2, 1)
BANK = (-6, -4, -2, 0, 2, 4, 6)
AVERAGED = (0, 1, 3)
SIDE_PENALTY = 3.0
LEVEL_PRIOR = 100.0  # variance of the first level, in variances of the series


@dataclass(frozen=True, eq=False)
class Fit:
    """A model with parameters: what is needed to filter a series."""

    structure: Structure
    point: Point
    start: float  # mean of the first level
    scale: int  # logarithm of base 2 of the unit
    factors: tuple[float, ...] = (1.0, 1.0, 1.0)

    def noise(self) -> tuple[Floats, float, float]:
        """The variances of the steps of all states, the decay of the deviation, and the irregular variance."""
        level, deviation, memory, irregular, *seasons = self.point
        unit = 4.0**self.scale
        q = np.empty(self.structure.size)
        q[LEVEL], q[DEVIATION] = 2.0**level * unit * self.factors[0], 2.0**deviation * unit * self.factors[1]
        q[FIRST_HARMONIC:] = np.exp2(np.array(seasons[1::2], dtype=np.float64))[self.structure.groups] * unit
        return q, 1 - 2.0**-memory, 2.0**irregular * unit * self.factors[2]

    def first_state(self) -> tuple[Floats, Floats]:
        """A level about which little is known, harmonics of the size of their season, a deviation in equilibrium."""
        q, phi, _ = self.noise()
        x = np.zeros(self.structure.size)
        x[LEVEL] = self.start
        variance = np.empty(self.structure.size)
        variance[LEVEL] = LEVEL_PRIOR * 4.0**self.scale
        variance[DEVIATION] = q[DEVIATION] / (1 - phi * phi)
        sizes = np.array(self.point[4::2], dtype=np.float64)
        variance[FIRST_HARMONIC:] = np.exp2(sizes)[self.structure.groups] * 4.0**self.scale
        return x, np.diag(variance)


def fit(series: Series, structure: Structure) -> Fit:
    known = series.values[np.isfinite(series.values)]
    fresh = series.fresh[np.isfinite(series.values)]
    noise = float(fresh.mean())
    signal = max(float(known.var()) - noise, noise * (2 / len(known)) ** 0.5)
    if signal <= 0:
        signal = max(abs(float(known.mean())), 1.0) ** 2 * 1e-6
    seasons = len(structure.seasons)
    lowest, highest, centre, width = (
        np.array([*plain, *[size, drift] * seasons])
        for plain, size, drift in zip((LOWEST, HIGHEST, CENTRE, WIDTH), SIZE, DRIFT, strict=True)
    )
    begin = Fit(structure, (*START, *[SIZE[2], DRIFT[2]] * seasons), float(np.median(known)), floor(log2(signal) / 2 + 0.5))

    def loss_of(structure):
        regressors = structure.regressors(series.numbers(0, len(series)))
        seen = {}
        def loss(point: Point) -> float:
            if point not in seen:
                seen[point] = compute(point)
            return seen[point]
        def compute(point):
            if (np.array(point) < lowest).any() or (np.array(point) > highest).any():
                return np.inf
            made = replace(begin, structure=structure, point=point)
            q, phi, irregular = made.noise()
            x, p = made.first_state()
            likelihood = log_likelihood(series.values, series.fresh + irregular, regressors, x, p, q, phi)
            global EVALS; EVALS += 1
            return -likelihood + float((((np.array(point) - centre) / width) ** 2).sum()) / 2
        return loss

    loss = loss_of(structure)
    point = _descend(loss, begin.point, STEPS)
    best = loss(point)
    if structure.modulated:
        for sides in range(1, MOST_SIDES + 1):
            wider = replace(structure, sides=sides)
            wloss = loss_of(wider)
            found = _descend(wloss, point, (2,1))
            if wloss(found) + SIDE_PENALTY > best:
                break
            begin, point, best, loss = replace(begin, structure=wider), found, wloss(found), wloss
    factors = []
    for place in AVERAGED:
        w = np.array([exp(best - loss(_moved(point, place, by))) for by in BANK])
        factors.append(float((w * np.exp2(BANK)).sum() / w.sum()) if MEANS else 1.0)
    return replace(begin, point=point, factors=tuple(factors))

EVALS = 0
MEANS = True

def _moved(point: Point, place: int, by: int) -> Point:
    return (*point[:place], point[place] + by, *point[place + 1 :])


def _descend(loss: Callable[[Point], float], point: Point, steps: Iterable[int]) -> Point:
    """The point that none of its neighbours is better than, for each size of steps."""
    for step in steps:
        better = True
        while better:
            before = loss(point)
            for place in range(len(point)):
                for by in (step, -step):
                    while loss(_moved(point, place, by)) < loss(point):
                        point = _moved(point, place, by)
            better = loss(point) < before - 0.1
    return point
