"""How many bits of an honest answer are set."""

from __future__ import annotations

from math import log, log1p

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.mechanisms.rounds import Flip


def width_law(k: int, held: int, own: float, flip: Flip) -> Floats:
    """The chances of 0, 1 .. k set bits, of which `held` can be; with chance `own`, one of these is the value's.

    >>> width_law(3, 3, 1.0, Flip(0.5, 0.2689)).round(3).tolist()
    [0.267, 0.464, 0.233, 0.036]
    """
    law = np.zeros(k + 1)
    law[: held + 1] = own * with_own_bit(held, flip) + (1 - own) * binomial(held, flip.q)
    return law


def with_own_bit(bits: int, flip: Flip) -> Floats:
    """The chances of 0, 1 .. set bits, of which one is set with p and the others with q."""
    return np.convolve(binomial(bits - 1, flip.q), [1 - flip.p, flip.p])


def binomial(n: int, q: float) -> Floats:
    """The chances of 0 .. n successes, in logarithms: their tails go far below the smallest float's accuracy."""
    if not 0 < q < 1:
        return np.asarray(np.eye(1, n + 1, n if q >= 1 else 0)[0])
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    times = np.arange(n + 1)
    logarithms = factorials[n] - factorials - factorials[::-1] + times * log(q) + (n - times) * log1p(-q)
    return np.asarray(np.exp(logarithms))
