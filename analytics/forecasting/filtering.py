"""The Kalman filter: compiled loops over the periods of a series.

A loop adds in a fixed order, and nothing is compiled with fast-math: the same series gives the same bits.
"""

from math import log, pi
from typing import NamedTuple

import numpy as np

from analytics.forecasting.structure import DEVIATION
from protocols.arrays import Floats
from protocols.arrays.compiling import compiled

LOG_TWO_PI = log(2 * pi)
NO_ORIGINS = np.empty((2, 0, 0))


class Filter(NamedTuple):
    """Mean and covariance of the state, which change in place, and what it moves by."""

    x: Floats
    p: Floats
    q: Floats
    phi: float
    irregular: float


@compiled
def move(x: Floats, p: Floats, q: Floats, phi: float) -> None:
    """From one period to the next: the deviation decays, and every state takes a step of variance `q`."""
    size = len(x)
    x[DEVIATION] *= phi
    for i in range(size):
        p[DEVIATION, i] *= phi
    for i in range(size):
        p[i, DEVIATION] *= phi
    for i in range(size):
        p[i, i] += q[i]


@compiled
def update(x: Floats, p: Floats, h: Floats, y: float, noise: float, ph: Floats) -> tuple[float, float]:
    """Take one value into the state; returns the surprise and its variance. `ph` is scratch space."""
    size = len(x)
    ph[:] = 0.0
    for i in range(size):
        weight = h[i]
        for j in range(size):
            ph[j] += p[i, j] * weight
    surprise, variance = y, noise
    for i in range(size):
        surprise -= h[i] * x[i]
        variance += h[i] * ph[i]
    inverse = 1.0 / variance
    gain = surprise * inverse
    for i in range(size):
        x[i] += ph[i] * gain
        for j in range(size):
            p[i, j] -= (ph[i] * ph[j]) * inverse  # the product first: the matrix stays symmetric to the bit
    return surprise, variance


@compiled
def predict(
    x: Floats, p: Floats, q: Floats, phi: float, irregular: float, regressors: Floats, mean: Floats, variance: Floats
) -> None:
    """Mean and variance, without noise, one row of `regressors` for each step ahead.

    After k steps the variance of each state has grown by k q; that of the deviation decays to that of an AR(1).
    """
    size = len(x)
    weight, pw = np.empty(size), np.empty(size)
    decay, grown = 1.0, 0.0
    for k in range(len(regressors)):
        decay *= phi
        grown = grown * phi * phi + q[DEVIATION]
        weight[:] = regressors[k]
        weight[DEVIATION] *= decay
        pw[:] = 0.0
        for i in range(size):
            for j in range(size):
                pw[j] += p[i, j] * weight[i]
        m, v = 0.0, grown + irregular
        for i in range(size):
            m += weight[i] * x[i]
            v += weight[i] * pw[i]
            if i != DEVIATION:
                v += (k + 1) * q[i] * weight[i] * weight[i]
        mean[k], variance[k] = m, v


@compiled
def log_likelihood(
    y: Floats, fresh: Floats, regressors: Floats, x: Floats, p: Floats, q: Floats, phi: float, irregular: float,
    mean: Floats, variance: Floats,
) -> float:  # fmt: skip
    """Of the values `y[period]` (NaN: missing), seen with fresh noise. Changes `x` and `p` to the last state.

    On the way it forecasts from the last origins: `mean[origin, step]` and `variance`, without noise. The last one has
    seen all values but the last, the one before also lacks that before it, and so on. `regressors` has a row for each
    period and for the steps after it. NO_ORIGINS asks for the likelihood alone.
    """
    first, ahead = len(y) - len(mean), mean.shape[1]
    ph = np.empty(len(x))
    total = 0.0
    for t in range(len(y)):
        if t >= first:
            predict(x, p, q, phi, irregular, regressors[t : t + ahead], mean[t - first], variance[t - first])
        if t:
            move(x, p, q, phi)
        if not np.isnan(y[t]):
            surprise, spread = update(x, p, regressors[t], y[t], fresh[t] + irregular, ph)
            total -= 0.5 * (LOG_TWO_PI + log(spread) + surprise * surprise / spread)
    return total
