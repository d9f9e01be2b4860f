"""Rounds of noise on places: what all of them have in common; and the channel of one round, or of two."""

from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.errors import InfeasibleError
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.rounds import MatrixRound

DENSE = 1024  # cells up to which the whole channel matrix is computed


class PlaceRound(MatrixRound):
    """Noise on the cells of an area."""

    area: Area
    rate: float
    """What one cell side of distance costs, at most."""
    through: float
    """Of a second round: what one cell side costs in one report, through the noise of the memo; otherwise the rate."""
    carries: bool
    """Whether it moves all cells alike, so that two memos of it are never further apart than their places."""

    def _set(self, **fields: object) -> None:
        for name, given in {"known_logs": None, **fields}.items():
            object.__setattr__(self, name, given)

    @property
    def cells(self) -> int:
        return self.area.k

    def forward(self, shares: Floats) -> Floats:
        """The chance of each cell to be reported, if these are the shares; any leading dimensions."""
        return np.asarray(shares @ self.matrix)

    def backward(self, votes: Floats) -> Floats:
        """For each true cell the mean of `votes` over its reports."""
        return np.asarray(votes @ self.matrix.T)

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the largest chance that each report can have, whatever the truth."""
        return np.asarray(self.matrix.min(axis=0)), np.asarray(self.matrix.max(axis=0))

    def refuse_many(self) -> None:
        """Raise InfeasibleError if the matrix would be too large."""
        if self.cells > DENSE:
            raise InfeasibleError(
                f"a grid of {self.cells:,} cells: the matrix of its channel is too large to go through",
                f"it is computed for up to {DENSE:,} cells: use larger cells, or audit with --only place",
            )

    @property
    def best_guesses(self) -> float:
        return float(np.sum(self.bounds[1]))


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
