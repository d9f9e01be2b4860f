"""How many values devices have, where an attribute is one of sets.

A set of m values is padded to L with the first L - m paddings. So the share of a padding is that of the devices with at
most so many values, and sizes are linear in the shares of paddings, which are estimated like those of values.
"""

import numpy as np

from analytics.estimation.estimates import CONFIDENCE, Estimates, quantile
from protocols.arrays import Floats


def set_sizes(paddings: Floats, spread: Floats) -> Estimates:
    """The shares of devices with 0, 1 .. values, of those with L or more, and the mean size, at most L of each device.

    `spread` is the covariance of the shares of paddings. Shares need not be between 0 and 1: they are unbiased.

    >>> set_sizes(np.array([0.9, 0.4, 0.1]), np.eye(3) * 1e-4).value.round(3).tolist()
    [0.1, 0.3, 0.5, 0.1, 1.6]
    """
    several = len(paddings)
    steps = np.eye(several + 1, several) - np.eye(several + 1, several, -1)  # "at most" becomes "exactly"
    weights = np.concatenate([steps, -np.ones((1, several))])[:, ::-1]
    value = weights @ paddings
    value[-2:] += 1, several
    error = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", weights, spread, weights), 0))
    half = quantile(CONFIDENCE) * error
    return Estimates(value, error, value - half, value + half)
