"""Rounds of noise on places: what all of them have in common; and the channel of one round, or of two.

Their tables are whole numbers. The same basic operations, in the same order, give the same integers on every machine
and in every language: +, *, the square root and a polynomial. No library's exponential is called.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hearsay_device.draws import COEFFICIENTS, INVERSE_LN2
from protocols.arrays.aliases import Floats
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.rounds import MatrixRound

ANYWHERE = 1 << 24
"""Of 2^64: the chance of each cell to be reported whatever the truth is.

It keeps the promise exact although the table has whole numbers: what rounding changes is 2^-62, far below this.
"""
LEAST_RATE, MOST_RATE = 0.05, 20.0
"""Per cell side: below, cells are too small for the noise; above, nothing is protected."""
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # their sum is ln 2; the first has spare bits


def falling(x: Floats) -> tuple[Floats, Floats]:
    """e^-x as (m, n), which stand for m 2^-n.

    >>> m, n = falling(np.array([0.0, 1.0, 30.0]))
    >>> np.abs(np.ldexp(m, -n.astype(int)) / np.exp([-0.0, -1.0, -30.0]) - 1).max() < 1e-15
    np.True_
    """
    n = np.floor(x * INVERSE_LN2)
    rest = (x - n * _LN2_HIGH) - n * _LN2_LOW
    total = np.zeros_like(x)
    for coefficient in reversed(COEFFICIENTS):
        total = total * rest + coefficient
    return total, n


class PlaceRound(MatrixRound):
    """Noise on the cells of an area: `rate` is what one cell side of distance costs, at most.

    `through` is, of a second round, what one cell side costs in one report, through the noise of the memo; otherwise
    the rate.
    """

    def __init__(self, area: Area, rate: float, through: float | None) -> None:
        self.area, self.rate, self.through = area, rate, rate if through is None else through

    @property
    def k(self) -> int:
        return self.area.k


@dataclass(frozen=True, eq=False)
class PlanarChannel:
    """The channel of one report, of one or two rounds; a report supports the cell it names.

    >>> from protocols.mechanisms.places.displacement import PlanarRound
    >>> channel = PlanarChannel((PlanarRound(4, 3, 1.0),))
    >>> shares = np.random.default_rng(1).dirichlet(np.ones(12))
    >>> bool(np.abs(channel.support(shares) - shares @ channel.rounds[0].matrix).max() < 1e-12)
    True
    """

    rounds: tuple[PlaceRound, ...] = field(repr=False)
    exclusive = True

    @property
    def k(self) -> int:
        return self.rounds[0].k

    def support(self, frequencies: Floats) -> Floats:
        """The chance of each cell to be reported, if these are the frequencies; any leading dimensions."""
        for noise in self.rounds:
            frequencies = noise.support(frequencies)
        return frequencies

    def back(self, votes: Floats) -> Floats:
        """For each true cell the mean of `votes` over its reports: the transpose of `support`."""
        for noise in reversed(self.rounds):
            votes = noise.back(votes)
        return votes

    @cached_property
    def matrix(self) -> Floats:
        """P(report is y | truth is x), for grids that are small enough."""
        found = self.rounds[0].matrix
        for noise in self.rounds[1:]:
            found = found @ noise.matrix
        return np.asarray(found)
