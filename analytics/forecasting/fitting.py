"""Fitting the parameters of a series by their likelihood.

Nelder and Mead's search over logarithms, from a fixed start and with a fixed number of evaluations: no randomness, and
no derivative that a rounding error could turn. A wide prior on the logarithms keeps those where they are that the
series says nothing about.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log2
from typing import Any

import numpy as np
from scipy.optimize import minimize

from analytics.forecasting.filtering import log_likelihood
from analytics.forecasting.parameters import Parameters, noise
from analytics.forecasting.structure import DEVIATION, LEVEL, Structure
from protocols.arrays import Floats

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


def fit(
    y: Floats, noise_variance: Floats, structure: Structure, first: int = 0, begin: Parameters | None = None
) -> Fit:
    """The likeliest parameters of `y[period]` (NaN: missing), seen with fresh noise of known variance.

    `first` is the number of the first period, for the phase of the seasons; `begin` is where to search.
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

    origin = begin.point if begin else np.array([*START, *centre[4:]])
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
