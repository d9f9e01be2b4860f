"""The channel of places: a convolution over the grid, with what leaves it moved to the nearest cell inside."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from protocols.arrays.aliases import Floats
from protocols.mechanisms.places.displacement import PlanarRound
from protocols.mechanisms.places.law import ANYWHERE, WORD, weights

NEGLIGIBLE = 36.0  # e^-36: displacements that are rarer are folded onto the largest one that is not


@dataclass(frozen=True, eq=False)
class PlanarChannel:
    """The channel of one report, of one or two rounds; a report supports the cell it names.

    >>> channel = PlanarChannel((PlanarRound(4, 3, 1.0),))
    >>> shares = np.random.default_rng(1).dirichlet(np.ones(12))
    >>> bool(np.abs(channel.support(shares) - shares @ channel.rounds[0].matrix).max() < 1e-12)
    True
    """

    rounds: tuple[PlanarRound, ...] = field(repr=False)
    exclusive = True

    @property
    def columns(self) -> int:
        return self.rounds[0].columns

    @property
    def rows(self) -> int:
        return self.rounds[0].rows

    @property
    def k(self) -> int:
        return self.columns * self.rows

    def support(self, frequencies: Floats) -> Floats:
        """The chance of each cell to be reported, if these are the frequencies; any leading dimensions."""
        plane = frequencies.reshape(*frequencies.shape[:-1], self.rows, self.columns)
        for noise in self.rounds:
            plane = _Convolution.of(noise).forward(plane)
        return np.asarray(plane.reshape(frequencies.shape))

    def back(self, votes: Floats) -> Floats:
        """For each true cell the mean of `votes` over its reports: the transpose of `support`."""
        plane = votes.reshape(*votes.shape[:-1], self.rows, self.columns)
        for noise in reversed(self.rounds):
            plane = _Convolution.of(noise).backward(plane)
        return np.asarray(plane.reshape(votes.shape))

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the largest chance that each report can have, whatever the truth (of the last round alone).

        >>> channel = PlanarChannel((PlanarRound(4, 3, 1.0),))
        >>> low, high = channel.bounds
        >>> bool((channel.matrix >= low).all() and (channel.matrix <= high + 1e-15).all() and high[0] > high[5])
        True
        """
        law, every = self.rounds[-1].chances, ANYWHERE / WORD
        up, across = (np.array([1] + [0] * (size - 2) + [2]) for size in (self.rows, self.columns))
        rows = slice(self.rows - 1, self.rows), slice(None, self.rows), slice(self.rows - 1, None)
        columns = slice(self.columns - 1, self.columns), slice(None, self.columns), slice(self.columns - 1, None)
        own = np.array([[law[r, c].sum() for c in columns] for r in rows])
        return np.full(self.k, every), np.asarray(own[up[:, None], across].ravel() + every)

    @cached_property
    def matrix(self) -> Floats:
        """P(report is y | truth is x), for grids that are small enough."""
        found = self.rounds[0].matrix
        for noise in self.rounds[1:]:
            found = found @ noise.matrix
        return found


@dataclass(frozen=True, eq=False)
class _Convolution:
    """One round, ready to be applied: the transform of its law, and how far it reaches."""

    shape: tuple[int, int]  # of the grid: rows, columns
    reach: tuple[int, int]
    size: tuple[int, int]  # of the transforms
    law: NDArray[np.complex128]

    @classmethod
    def of(cls, noise: PlanarRound) -> _Convolution:
        return _prepared(noise.columns, noise.rows, noise.rate)

    def forward(self, plane: Floats) -> Floats:
        (rows, columns), (up, across) = self.shape, self.reach
        spread = np.fft.irfft2(np.fft.rfft2(plane, self.size) * self.law, self.size)
        spread = spread[..., : rows + 2 * up, : columns + 2 * across]
        inside = spread[..., up : up + rows, across : across + columns].copy()
        sides = spread[..., up : up + rows, :]
        inside[..., 0] += sides[..., :across].sum(axis=-1)
        inside[..., -1] += sides[..., across + columns :].sum(axis=-1)
        for edge, outside in ((0, spread[..., :up, :]), (-1, spread[..., up + rows :, :])):
            beyond = outside.sum(axis=-2)
            inside[..., edge, :] += beyond[..., across : across + columns]
            inside[..., edge, 0] += beyond[..., :across].sum(axis=-1)
            inside[..., edge, -1] += beyond[..., across + columns :].sum(axis=-1)
        every = ANYWHERE / WORD
        return np.asarray(
            np.maximum(inside, 0) * (1 - every * rows * columns) + every * plane.sum(axis=(-1, -2), keepdims=True)
        )

    def backward(self, plane: Floats) -> Floats:
        (rows, columns), (up, across) = self.shape, self.reach
        padded = np.pad(plane, [(0, 0)] * (plane.ndim - 2) + [(up, up), (across, across)], mode="edge")
        gathered = np.fft.irfft2(np.fft.rfft2(padded, self.size) * self.law, self.size)
        inside = gathered[..., 2 * up : 2 * up + rows, 2 * across : 2 * across + columns]
        every = ANYWHERE / WORD
        return np.asarray(inside * (1 - every * rows * columns) + every * plane.sum(axis=(-1, -2), keepdims=True))


@lru_cache(maxsize=16)
def _prepared(columns: int, rows: int, rate: float) -> _Convolution:
    furthest = ceil(NEGLIGIBLE / rate)
    up, across = min(rows - 1, furthest), min(columns - 1, furthest)
    law = weights(across + 1, up + 1, rate)
    size = _smooth(rows + 2 * up), _smooth(columns + 2 * across)
    return _Convolution((rows, columns), (up, across), size, np.fft.rfft2(law / law.sum(), size))


def _smooth(size: int) -> int:
    """The next number without prime factors above 5: transforms of such sizes are fast.

    >>> _smooth(97), _smooth(128)
    (100, 128)
    """
    while True:
        rest = size
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return size
        size += 1
