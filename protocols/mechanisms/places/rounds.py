"""Rounds of noise on places: what those that displace and those that weigh have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from protocols.arrays.aliases import Column, Floats, Whole, Words
from protocols.errors import InfeasibleError
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.rounds import MatrixRound
from protocols.randomness.keystream import Draws

DENSE = 1024  # cells up to which the whole channel matrix is computed


class PlaceRound(MatrixRound, ABC):
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

    @property
    @abstractmethod
    def table(self) -> Words:
        """The integers that it draws with: one row, or one for each cell."""

    @abstractmethod
    def sample(self, cells: Whole, draws: Draws) -> Column:
        """The noisy cell of each row."""

    @abstractmethod
    def forward(self, shares: Floats) -> Floats:
        """The chance of each cell to be reported, if these are the shares; any leading dimensions."""

    @abstractmethod
    def backward(self, votes: Floats) -> Floats:
        """For each true cell the mean of `votes` over its reports."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the largest chance that each report can have, whatever the truth."""

    def refuse_many(self) -> None:
        """Raise InfeasibleError if the matrix would be too large."""
        if self.cells > DENSE:
            raise InfeasibleError(
                f"a grid of {self.cells:,} cells: the matrix of its channel is too large to go through",
                f"it is computed for up to {DENSE:,} cells: use larger cells, or audit with --only place",
            )

    @property
    def best_guesses(self) -> float:
        """The sum over all reports of the largest chance that any cell gives them."""
        return float(np.sum(self.bounds[1]))
