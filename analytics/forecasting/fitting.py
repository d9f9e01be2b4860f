"""Fitting the parameters of a series by their likelihood.

Nelder and Mead's search over logarithms, from a fixed start and with a fixed number of evaluations: no randomness, and
no derivative that a rounding error could turn. A wide prior on the logarithms keeps those where they are that the
series says nothing about.

Parameters are variances and the memory of the deviation, on a grid. A fit is rounded to the grid before it is used:
variances to eighths of a power of two, relative to a scale that is a power of two itself, and the deviation's memory to
a table. So two machines whose logarithms differ in the last digit have the same parameters, and a forecast can say in a
few small integers which ones it used.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log2
from typing import Any

import numpy as np
from scipy.optimize import minimize

from analytics.forecasting.filtering import log_likelihood
from analytics.forecasting.structure import DEVIATION, FIRST_HARMONIC, LEVEL, Structure
from protocols.arrays import Floats

STEPS = 8  # grid points for each doubling of a variance
SMALLEST, LARGEST = -30.0, 8.0  # logarithms of base 2 of variances, in units of the scale
MEMORY_STEPS = 4  # grid points for each halving of what an AR(1) forgets in a period
LONGEST_MEMORY = 10.0  # at most 1 - 2^-10


@dataclass(frozen=True)
class Parameters:
    """Integers on the grid. `scale` is the logarithm of base 2 of the unit in which the series is measured."""

    scale: int
    level: int
    deviation: int
    memory: int
    irregular: int
    seasons: tuple[int, ...]

    @staticmethod
    def rounded(scale: int, point: Floats) -> Parameters:
        """The grid point next to logarithms of base 2: level, deviation, memory, irregular, seasons."""
        logs = clipped(point)
        level, deviation, irregular, *seasons = (round(float(log) * STEPS) for log in np.delete(logs, 2))
        memory = round(float(logs[2]) * MEMORY_STEPS)
        return Parameters(scale, level, deviation, memory, irregular, tuple(seasons))

    def noise(self, structure: Structure) -> tuple[Floats, float, float]:
        """The variances of the steps of all states, the decay of the deviation, and the irregular variance."""
        logs = [self.level, self.deviation, 0, self.irregular, *self.seasons]
        point = np.array(logs, dtype=np.float64) / STEPS
        point[2] = self.memory / MEMORY_STEPS
        return noise(point, 2.0**self.scale, structure)


def clipped(point: Floats) -> Floats:
    """The point, with every coordinate within the grid."""
    logs = np.clip(point, SMALLEST, LARGEST)
    logs[2] = np.clip(point[2], 0.0, LONGEST_MEMORY)
    return logs


def noise(point: Floats, unit: float, structure: Structure) -> tuple[Floats, float, float]:
    """As `Parameters.noise`, from logarithms that need not be on the grid."""
    logs = clipped(point)
    variances = np.exp2(logs) * unit * unit
    q = np.empty(structure.size)
    q[LEVEL], q[DEVIATION] = variances[0], variances[1]
    q[FIRST_HARMONIC:] = variances[4:][structure.groups]
    return q, float(1 - np.exp2(-logs[2])), float(variances[3])


EVALUATIONS = 320
CENTRE, WIDTH = (-12.0, -4.0, 3.0, -4.0), (8.0, 8.0, 3.0, 8.0)  # the prior: level, deviation, memory, irregular
SEASON_CENTRE, SEASON_WIDTH = -18.0, 8.0
START = (-14.0, -8.0, 5.0, -4.0)  # where the search begins: both level and deviation move, and the latter lasts
LEVEL_PRIOR = 100.0  # variance of the first level, in variances of the series


@dataclass(frozen=True, eq=False)
class Fit:
    """A model with parameters: what is needed to filter a series."""

    structure: Structure
    parameters: Parameters
    start: float  # mean of the first level
    spread: float  # variance of the series, from which the first state's variance derives

    def first_state(self) -> tuple[Floats, Floats]:
        """Mean and covariance of the state before the first value."""
        q, phi, _ = self.parameters.noise(self.structure)
        return first_state(self.structure, self.start, self.spread, q, phi)


def first_state(structure: Structure, start: float, spread: float, q: Floats, phi: float) -> tuple[Floats, Floats]:
    """A level about which little is known, harmonics of the size of the series, a deviation in equilibrium."""
    x = np.zeros(structure.size)
    x[LEVEL] = start
    variance = np.full(structure.size, spread)
    variance[LEVEL] = LEVEL_PRIOR * spread
    variance[DEVIATION] = q[DEVIATION] / (1 - phi * phi)
    return x, np.diag(variance)


def fit(y: Floats, noise_variance: Floats, structure: Structure, first: int = 0) -> Fit:
    """The likeliest parameters of `y[period]` (NaN: missing), seen with fresh noise of known variance.

    `first` is the number of the first period, for the phase of the seasons.
    """
    known = y[np.isfinite(y)]
    start, spread = float(np.median(known)), _spread(known)
    scale = floor(log2(spread) / 2 + 0.5)
    regressors = structure.regressors(first, len(y))
    seasons = len(structure.seasons)
    centre, width = np.array([*CENTRE, *[SEASON_CENTRE] * seasons]), np.array([*WIDTH, *[SEASON_WIDTH] * seasons])

    def loss(point: Floats) -> float:
        q, phi, irregular = noise(point, 2.0**scale, structure)
        x, p = first_state(structure, start, spread, q, phi)
        likelihood = log_likelihood(y, noise_variance + irregular, regressors, x, p, q, phi)
        return -likelihood + float((((point - centre) / width) ** 2).sum()) / 2

    origin = np.array([*START, *centre[4:]])
    simplex = np.vstack([origin, origin + np.diag([2.0, 2.0, 1.5, 2.0, *[3.0] * seasons])])
    options: Any = {"maxfev": EVALUATIONS, "initial_simplex": simplex, "xatol": 1 / 16, "fatol": 0.05, "adaptive": True}
    found = minimize(loss, origin, method="Nelder-Mead", options=options)
    return Fit(structure, Parameters.rounded(scale, found.x), start, spread)


def _spread(known: Floats) -> float:
    """The variance of a series, as a power of two: above zero even if the series is constant."""
    variance = float(known.var())
    if variance <= 0:
        variance = max(abs(float(known.mean())), 1.0) ** 2 * 1e-6
    return 2.0 ** round(log2(variance))
