"""A round of noise on places: displaced by a law, moved to the nearest cell inside (PROTOCOLS 10).

On a grid of C columns every displacement by C - 1 columns or more ends in the same column, so the law is folded: the
table is finite, and nothing is cut off. Shares of cells go through it as through a convolution over the grid.
"""

from functools import cached_property
from itertools import accumulate
from math import ceil, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from hearsay_device.draws import INVERSE_LN2, WORD
from protocols.arrays.aliases import Column, Floats, Whole, Words
from protocols.arrays.columns import smallest_unsigned
from protocols.errors import InfeasibleError
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.rounds import ANYWHERE, PlaceRound, falling
from protocols.mechanisms.rounds import Round
from protocols.randomness.keystream import Draws
from protocols.randomness.sampling import below

DENSE = 1024  # cells up to which the whole channel matrix is computed
FEW = 900  # cells: up to here a product with the matrix is quicker than transforms, thirtyfold with 140 cells
NEGLIGIBLE = 36.0  # e^-36: displacements that are rarer are folded onto the largest one that is not
_BITS = 62  # all weights together stay below 2^62


def weights(columns: int, rows: int, rate: float) -> NDArray[np.int64]:
    """The folded law, [row, column] of the displacement from (-(rows - 1), -(columns - 1)) on; not divided by its sum.

    >>> table = weights(3, 2, 1.0)
    >>> table.shape, bool((table == table[::-1, ::-1]).all()), int(table.argmax())
    ((3, 5), True, 7)
    """
    bound = 1 + 2 * sqrt(2) / rate
    bits = _BITS - int(bound * bound + 1).bit_length()
    reach = ceil(bits / INVERSE_LN2 / rate) + 1  # beyond, a weight is 0
    distances = np.arange(reach + 1, dtype=np.float64)
    squares = distances * distances
    mantissa, power = falling(rate * np.sqrt(squares[:, None] + squares))
    quadrant = np.floor(np.ldexp(mantissa, (bits - power).astype(np.int64))).astype(np.int64)
    quadrant = np.pad(quadrant, ((0, max(0, rows - 1 - reach)), (0, max(0, columns - 1 - reach))))
    folded = np.concatenate([quadrant[:, : columns - 1], quadrant[:, columns - 1 :].sum(axis=1)[:, None]], axis=1)
    folded = np.concatenate([folded[: rows - 1], folded[rows - 1 :].sum(axis=0)[None]])
    table = np.concatenate([folded[:0:-1], folded])
    return np.concatenate([table[:, :0:-1], table], axis=1)


def cuts(columns: int, rows: int, rate: float) -> Words:
    """Where [0, 2^64) is cut: a piece for each displacement, row by row, and the last one for a cell drawn evenly."""
    table = weights(columns, rows, rate)
    total = int(table.sum())
    share = WORD - ANYWHERE * columns * rows
    return np.array([running * share // total for running in accumulate(table.ravel().tolist())], dtype=np.uint64)


class PlanarRound(PlaceRound):
    """Noise on the cells of a grid: `rate` is what one cell side of distance costs.

    >>> noise = PlanarRound(3, 2, 1.0)
    >>> noise.matrix.sum(axis=1).round(12).tolist(), bool(np.ptp(np.diff(noise.logs[:2, 0])) < 1e-9)
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], True)
    """

    def __init__(self, columns: int, rows: int, rate: float, through: float | None = None) -> None:
        super().__init__(Area(columns, rows), rate, through)
        self.columns, self.rows = columns, rows

    @property
    def numbers(self) -> dict[str, float]:  # type: ignore[override]
        """What its table follows from."""
        return {"rate": self.rate}

    @property
    def chances(self) -> Floats:
        """The law as floats: [row, column] of the displacement, from (-(rows - 1), -(columns - 1)) on."""
        pieces = np.diff(self.table[0], prepend=np.uint64(0))
        return np.asarray(pieces.astype(np.float64).reshape(2 * self.rows - 1, -1) / WORD)

    @cached_property
    def table(self) -> Words:
        return cuts(self.columns, self.rows, self.rate)[None]

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Each report is likeliest from its own cell; those at the border also have what is moved inside.

        >>> noise = PlanarRound(4, 3, 1.0)
        >>> low, high = noise.bounds
        >>> bool((noise.matrix >= low).all() and (noise.matrix <= high + 1e-15).all() and high[0] > high[5])
        True
        >>> bool(abs(noise.best_guesses - noise.matrix.max(axis=0).sum()) < 1e-9)
        True
        """
        law, every = self.chances, ANYWHERE / WORD
        up, across = (np.array([1] + [0] * (size - 2) + [2]) for size in (self.rows, self.columns))
        rows = slice(self.rows - 1, self.rows), slice(None, self.rows), slice(self.rows - 1, None)
        columns = slice(self.columns - 1, self.columns), slice(None, self.columns), slice(self.columns - 1, None)
        own = np.array([[law[r, c].sum() for c in columns] for r in rows])
        return np.full(self.k, every), np.asarray(own[up[:, None], across].ravel() + every)

    @cached_property
    def _transformed(self) -> tuple[tuple[int, int], tuple[int, int], NDArray[np.complex128]]:
        """How far the law reaches up and across, the size of transforms, and that of the law."""
        from scipy.fft import next_fast_len  # scipy takes long to import

        furthest = ceil(NEGLIGIBLE / self.rate)
        up, across = min(self.rows - 1, furthest), min(self.columns - 1, furthest)
        law = weights(across + 1, up + 1, self.rate)
        size = next_fast_len(self.rows + 2 * up, real=True), next_fast_len(self.columns + 2 * across, real=True)
        return (up, across), size, np.fft.rfft2(law / law.sum(), size)

    def _and_anywhere(self, found: Floats, given: Floats) -> Floats:
        every = ANYWHERE / WORD
        return np.asarray(found * (1 - every * self.k) + every * given.sum(axis=(-1, -2), keepdims=True))

    def support(self, frequencies: Floats) -> Floats:
        if self.k <= FEW:
            return super().support(frequencies)
        (rows, columns), ((up, across), size, law) = (self.rows, self.columns), self._transformed
        plane = frequencies.reshape(*frequencies.shape[:-1], rows, columns)
        spread = np.fft.irfft2(np.fft.rfft2(plane, size) * law, size)
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
        return self._and_anywhere(np.maximum(inside, 0), plane).reshape(frequencies.shape)

    def back(self, votes: Floats) -> Floats:
        if self.k <= FEW:
            return super().back(votes)
        (rows, columns), ((up, across), size, law) = (self.rows, self.columns), self._transformed
        plane = votes.reshape(*votes.shape[:-1], rows, columns)
        padded = np.pad(plane, [(0, 0)] * (plane.ndim - 2) + [(up, up), (across, across)], mode="edge")
        gathered = np.fft.irfft2(np.fft.rfft2(padded, size) * law, size)
        inside = gathered[..., 2 * up : 2 * up + rows, 2 * across : 2 * across + columns]
        return self._and_anywhere(inside, plane).reshape(votes.shape)

    @cached_property
    def matrix(self) -> Floats:  # type: ignore[override]
        """P(cell y | cell x), from the integers that devices draw with; for grids of up to `DENSE` cells."""
        if self.k > DENSE:
            raise InfeasibleError(
                f"a grid of {self.k:,} cells: the matrix of its channel is too large to go through",
                f"it is computed for up to {DENSE:,} cells: use larger cells, or audit with --only place",
            )
        law = self.chances.ravel()
        across, up = np.arange(1 - self.columns, self.columns), np.arange(1 - self.rows, self.rows)
        found = np.empty((self.k, self.k))
        for cell in range(self.k):
            row, column = divmod(cell, self.columns)
            rows, columns = (row + up).clip(0, self.rows - 1), (column + across).clip(0, self.columns - 1)
            found[cell] = np.bincount((rows[:, None] * self.columns + columns).ravel(), law, self.k)
        return np.asarray(found + ANYWHERE / WORD)

    def sample(self, inputs: Whole, draws: Draws) -> Column:
        words = draws.blocks(1).view("<u8")
        drawn = np.searchsorted(self.table[0], words[:, 0], side="right")
        up, across = np.divmod(drawn, 2 * self.columns - 1)
        row, column = np.divmod(inputs.astype(np.int64), self.columns)
        row = (row + up - (self.rows - 1)).clip(0, self.rows - 1)
        column = (column + across - (self.columns - 1)).clip(0, self.columns - 1)
        found = np.where(drawn == self.table.size, below(self.k, words[:, 1]), row * self.columns + column)
        return np.asarray(found.astype(smallest_unsigned(self.k)))


def rate_after(first: Round, second: Round | None, t: float = 1) -> float:
    """What one cell side of distance costs, at most, after t linked reports from one memo; infinity: for ever.

    It is never more than the memo costs. Where round 1 moves all cells alike, t reports cost at most t times the rate
    of round 2, because two memos are never further apart than their places; elsewhere only one report is known to cost
    less than the memo.

    >>> memo, fresh = PlanarRound(9, 9, 2.0), PlanarRound(9, 9, 0.7, through=0.6)
    >>> [rate_after(memo, fresh, t) for t in (1, 2, 10)], rate_after(memo, None)
    ([0.6, 1.4, 2.0], 2.0)
    """
    assert isinstance(first, PlaceRound) and (second is None or isinstance(second, PlaceRound))
    if second is None or t == inf or (t > 1 and not isinstance(first, PlanarRound)):
        return first.rate
    return min(first.rate, second.through if t == 1 else t * second.rate)


def moved(first: Round, second: Round | None = None) -> tuple[Floats, Floats]:
    """How far reports are from their places: distances in cell sides, ascending, and their chances.

    On a whole grid as if it had no border; inside an area over all its cells alike.

    >>> far, chances = moved(PlanarRound(199, 199, 0.2))
    >>> round(float(far @ chances), 1), round(float(far**2 @ chances))
    (10.0, 150)
    """
    assert isinstance(first, PlaceRound) and (second is None or isinstance(second, PlaceRound))
    if isinstance(first, PlanarRound):
        law = first.chances
        if isinstance(second, PlanarRound):
            size = 2 * law.shape[0] - 1, 2 * law.shape[1] - 1
            law = np.fft.irfft2(np.fft.rfft2(law, size) * np.fft.rfft2(second.chances, size), size)
        up, across = (np.arange(size) - size // 2 for size in law.shape)
        return _by_distance(up[:, None] ** 2 + across**2, law)
    return _by_distance(first.area.squares, (first.matrix if second is None else first.matrix @ second.matrix))


def _by_distance(squares: Whole, chances: Floats) -> tuple[Floats, Floats]:
    far, place = np.unique(squares.ravel(), return_inverse=True)
    found = np.bincount(place, chances.ravel())
    return np.sqrt(far), np.asarray(found / found.sum(), dtype=np.float64)
