"""The displacement of places as a convolution over the grid, with what leaves it moved to the nearest cell inside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from protocols.arrays.aliases import Floats
from protocols.mechanisms.places.law import ANYWHERE, WORD, weights

NEGLIGIBLE = 36.0  # e^-36: displacements that are rarer are folded onto the largest one that is not


@dataclass(frozen=True, eq=False)
class Convolution:
    """One round, ready to be applied: the transform of its law, and how far it reaches."""

    shape: tuple[int, int]  # of the grid: rows, columns
    reach: tuple[int, int]
    size: tuple[int, int]  # of the transforms
    law: NDArray[np.complex128]

    @classmethod
    def of(cls, columns: int, rows: int, rate: float) -> Convolution:
        return _prepared(columns, rows, rate)

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
def _prepared(columns: int, rows: int, rate: float) -> Convolution:
    furthest = ceil(NEGLIGIBLE / rate)
    up, across = min(rows - 1, furthest), min(columns - 1, furthest)
    law = weights(across + 1, up + 1, rate)
    size = _smooth(rows + 2 * up), _smooth(columns + 2 * across)
    return Convolution((rows, columns), (up, across), size, np.fft.rfft2(law / law.sum(), size))


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
