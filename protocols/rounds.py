"""One round of noise, and how two of them chain (PROTOCOLS 1 to 3).

A `Flip` is a pair (p, q): p = P(output supports i | input is i), q = P(output supports i | input is not i). For a
direct encoding p + (k-1) q = 1 (generalised randomised response); for a unary one each bit is flipped on its own.
Either way two rounds chain into one by the same formula,

    p = p1 (p2 - q2) + q2        q = q1 (p2 - q2) + q2

because what does not keep its value lands on i with probability q2 whatever else it was. A `Blur` is the general
case: a full channel matrix over an ordered domain, which chains by multiplication.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, log

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Flip:
    """Keep with p, hit any other place with q.

    >>> Flip(0.75, 0.25).then(Flip(0.75, 0.25))
    Flip(p=0.625, q=0.375)
    """

    p: float
    q: float

    @property
    def gain(self) -> float:
        return self.p - self.q

    def then(self, other: Flip) -> Flip:
        return Flip(self.p * other.gain + other.q, self.q * other.gain + other.q)


@dataclass(frozen=True, eq=False)
class Blur:
    """A channel matrix: row = input, column = output, rows sum to 1."""

    matrix: Matrix = field(repr=False)

    def then(self, other: Blur) -> Blur:
        return Blur(self.matrix @ other.matrix)


Round = Flip | Blur


def grr(k: int, eps: float) -> Flip:
    """Generalised randomised response: the truth e^eps times as likely as any other value.

    >>> flip = grr(3, log(2))
    >>> round(flip.p, 3), round(flip.q, 3)
    (0.5, 0.25)
    """
    p = exp(eps) / (exp(eps) + k - 1)
    return Flip(p, (1 - p) / (k - 1))


def sue(eps: float) -> Flip:
    """Symmetric unary encoding: a one-hot vector differs in two bits, so each bit gets eps / 2."""
    p = exp(eps / 2) / (exp(eps / 2) + 1)
    return Flip(p, 1 - p)


def oue(eps: float) -> Flip:
    """Optimised unary encoding: ones are coin tosses, zeros keep nearly all of the budget."""
    return Flip(0.5, 1 / (exp(eps) + 1))


def geometric(k: int, eps: float) -> Blur:
    """The truncated geometric mechanism over 0 .. k-1: eps per unit of distance.

    >>> geometric(3, log(2)).matrix.sum(axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    """
    alpha = exp(-eps)
    places = np.arange(k)
    distance = np.abs(places[:, None] - places[None, :])
    inside = (1 - alpha) / (1 + alpha)
    matrix = inside * alpha**distance
    matrix[:, [0, -1]] = alpha ** distance[:, [0, -1]] / (1 + alpha)
    return Blur(matrix)


def symmetric_loss(flip: Flip) -> float:
    """What one unary report reveals: ln of p(1-q) / (q(1-p))."""
    return log(flip.p * (1 - flip.q) / (flip.q * (1 - flip.p)))
