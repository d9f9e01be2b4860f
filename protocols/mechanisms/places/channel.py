"""The channel of places: of one round of noise, or of two."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.mechanisms.places.rounds import PlaceRound


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
        return self.rounds[0].cells

    @property
    def rate(self) -> float:
        """What a cell side costs in one round that moves as far as all of them: squares of distances add up."""
        return 1 / sqrt(sum(1 / noise.rate**2 for noise in self.rounds))

    def support(self, frequencies: Floats) -> Floats:
        """The chance of each cell to be reported, if these are the frequencies; any leading dimensions."""
        for noise in self.rounds:
            frequencies = noise.forward(frequencies)
        return frequencies

    def back(self, votes: Floats) -> Floats:
        """For each true cell the mean of `votes` over its reports: the transpose of `support`."""
        for noise in reversed(self.rounds):
            votes = noise.backward(votes)
        return votes

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the largest chance that each report can have, whatever the truth (of the last round alone)."""
        return self.rounds[-1].bounds

    @cached_property
    def matrix(self) -> Floats:
        """P(report is y | truth is x), for grids that are small enough."""
        found = self.rounds[0].matrix
        for noise in self.rounds[1:]:
            found = found @ noise.matrix
        return np.asarray(found)
