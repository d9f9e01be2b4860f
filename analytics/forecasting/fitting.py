"""Fitting the parameters of a series by their likelihood.

Parameters are logarithms of base 2 on a grid of whole numbers, in units of what varies in the series beside its known
noise. The search goes from neighbour to neighbour, with smaller and smaller steps: no randomness and no derivative, so
two machines whose logarithms differ in the last digit find the same. A prior keeps parameters where they are that the
series says nothing about: nothing moves, and no season is there, unless the series shows it.

The means of forecasts are those of the likeliest parameters. Their intervals are those of cautious ones: variances may
well be larger than the likeliest, and the less a series says, the more. So each is averaged over a bank of values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import floor, log2, sqrt

import numpy as np

from analytics.forecasting.filtering import NO_ORIGINS, Filter, log_likelihood
from analytics.forecasting.structure import DEVIATION, FIRST_HARMONIC, LEVEL, MOST_SIDES, Series, Structure

# The lowest and the highest value, where the search begins, and centre and width of the prior.
# They were chosen on days of simulated areas, with and without weeks and drift, and on the regions of Montreuil.
LEVEL_STEP = (-30, 8, -14, -18, 5)
DEVIATION_STEP = (-30, 8, -8, -16, 5)
MEMORY = (0, 10, 5, 3, 3)  # the deviation decays by 1 - 2^-memory
IRREGULAR = (-30, 8, -4, -4, 8)
SIZE = (-24, 2, -3, -16, 3)  # variance of the first harmonics of a season
DRIFT = (-30, 8, -18, -24, 4)  # variance of their steps
PLAIN = (LEVEL_STEP, DEVIATION_STEP, MEMORY, IRREGULAR)

STEPS = (2, 1)
STARTS = ((-14.0, -8.0, 5.0), (-18.0, -6.0, 4.0))  # level, deviation, memory: from one start, one is taken for another
ENOUGH = 0.1  # what a round of steps must gain for another one
SECOND_SIZE, SIDE_SIZE = 6, -9  # side bands are looked for where they would be seen, also beside a week of no size
SIDE_PENALTY = 0.5  # what one more side band must gain
BANK = np.array([-6, -4, -2, 0, 2, 4, 6])
CAUTIOUS = (0, 1, 3)  # level, deviation, irregular
CAUTION = 1.25  # power of a variance in the bank's prior. With 0, 95 % intervals of short noisy series cover 88 %.
GRAIN = 8  # grid points of cautious variances for each doubling
LEVEL_PRIOR = 100.0  # variance of the first level

Point = tuple[float, ...]
"""The plain parameters, then size and drift of each season."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A model with parameters: what is needed to filter a series."""

    structure: Structure
    start: float  # mean of the first level
    scale: int  # logarithm of base 2 of the variance that is the unit
    likeliest: Point
    cautious: Point

    def filter(self, point: Point | None = None) -> Filter:
        """Before the first value: a level about which little is known, and a deviation in equilibrium."""
        logs = np.array(self.likeliest if point is None else point)
        variances = np.exp2(logs + self.scale)
        q, first = np.empty((2, self.structure.size))
        phi = 1 - 2.0 ** -logs[2]
        q[LEVEL], q[DEVIATION] = variances[:2]
        first[LEVEL], first[DEVIATION] = LEVEL_PRIOR * 2.0**self.scale, q[DEVIATION] / (1 - phi * phi)
        first[FIRST_HARMONIC:], q[FIRST_HARMONIC:] = (variances[kind::2][self.structure.groups] for kind in (4, 5))
        x = np.zeros(self.structure.size)
        x[LEVEL] = self.start
        return Filter(x, np.diag(first), q, float(phi), float(variances[3]))


def fit(series: Series, structure: Structure) -> Fit:
    """The likeliest parameters of a series, and cautious ones, with as many side bands as they are worth."""
    known = np.isfinite(series.values)
    values, noise = series.values[known], float(series.fresh[known].mean())
    # What varies beside the noise is not known better than its variance is.
    signal = max(float(values.var()) - noise, noise * sqrt(2 / len(values)))
    scale = floor(log2(signal or max(abs(float(values.mean())), 1.0) ** 2 * 1e-6) + 0.5)
    begin = tuple(float(parameter[2]) for parameter in _parameters(structure))
    best = Fit(structure, float(np.median(values)), scale, begin, begin)
    loss = _loss(series, best)
    found = [_descend(loss, (*start, *begin[len(start) :]), STEPS) for start in STARTS]
    best = replace(best, likeliest=min(found, key=loss))
    for sides in range(1, MOST_SIDES + 1 if structure.modulated else 1):
        wider = replace(best, structure=replace(structure, sides=sides))
        loss_of_wider = _loss(series, wider)
        seen = _moved(best.likeliest, SECOND_SIZE, max(SIDE_SIZE - best.likeliest[SECOND_SIZE], 0))
        wide = _descend(loss_of_wider, seen, STEPS[:1])
        # A new search gains a little without side bands, too.
        best = replace(best, likeliest=min(best.likeliest, _descend(loss, wide, STEPS), key=loss))
        if loss_of_wider(wide) + SIDE_PENALTY > loss(best.likeliest):
            break
        best, loss = replace(wider, likeliest=wide), loss_of_wider
    cautious = list(best.likeliest)
    for place in CAUTIOUS:
        losses = np.array([loss(_moved(best.likeliest, place, by)) for by in BANK])
        weights = np.exp(losses.min() - losses) * np.exp2(CAUTION * BANK)
        mean = float((weights * np.exp2(BANK)).sum() / weights.sum())
        cautious[place] += round(log2(mean) * GRAIN) / GRAIN
    return replace(best, cautious=tuple(cautious))


def _parameters(structure: Structure) -> Sequence[tuple[int, ...]]:
    return [*PLAIN, *[SIZE, DRIFT] * len(structure.seasons)]


def _loss(series: Series, fit: Fit) -> Callable[[Point], float]:
    """How unlikely parameters are: of this series, and before it is known."""
    regressors = fit.structure.regressors(series.numbers(0, len(series)))
    lowest, highest, _, centre, width = np.array(_parameters(fit.structure)).T

    @cache
    def loss(point: Point) -> float:
        if (np.array(point) < lowest).any() or (np.array(point) > highest).any():
            return np.inf
        prior = float((((np.array(point) - centre) / width) ** 2).sum()) / 2
        return prior - log_likelihood(series.values, series.fresh, regressors, *fit.filter(point), *NO_ORIGINS)

    return loss


def _descend(loss: Callable[[Point], float], point: Point, steps: Sequence[int]) -> Point:
    """A point that is better than its neighbours, for each size of steps."""
    for step in steps:
        before = np.inf
        while loss(point) < before - ENOUGH:
            before = loss(point)
            for place in range(len(point)):
                for by in (step, -step):
                    while loss(_moved(point, place, by)) < loss(point):
                        point = _moved(point, place, by)
    return point


def _moved(point: Point, place: int, by: float) -> Point:
    return (*point[:place], point[place] + by, *point[place + 1 :])
