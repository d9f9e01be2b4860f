"""Exact sampling from integers (PROTOCOLS 8): no float is compared, no remainder is taken.

A distribution over m symbols becomes a table of 2^16 slots. Symbol i owns floor(P_i 2^16) of them, and the slots that
are left over are resolved by 64 further bits among the symbols' remainders. One look-up settles nearly every draw,
and the probabilities are exact to 2^-64.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from protocols.columns import Column, PackedBits, smallest_unsigned
from protocols.kernels import look_up
from protocols.keystream import Draws

SLOTS = 1 << 16
WORD = 1 << 64


class Table:
    """An exact sampler of one distribution.

    >>> from protocols.keystream import Keyring
    >>> coin = Table([0.75, 0.25])
    >>> draws = Keyring(bytes(32)).draws(("coin",), np.arange(100_000, dtype=np.uint64))
    >>> 24_000 < int(coin.sample(draws).sum()) < 26_000
    True
    """

    def __init__(self, probabilities: Sequence[float] | NDArray[np.float64]) -> None:
        weights = _whole_numbers(probabilities)
        total = sum(weights)  # floats sum to 1 only nearly; shares of their sum are exact
        owned = [weight * SLOTS // total for weight in weights]
        self.symbols = len(weights)
        self.filled = sum(owned)
        self._slots = np.zeros(SLOTS, dtype=smallest_unsigned(self.symbols))
        self._slots[: self.filled] = np.repeat(np.arange(self.symbols), owned)
        self._cuts = _cuts([weight * SLOTS - own * total for weight, own in zip(weights, owned, strict=True)])

    def sample(self, draws: Draws, count: int = 1) -> Column:
        """One symbol for each row of `draws` (`count` > 1: that many, as columns)."""
        out, left = look_up(self._slots, self.filled, draws.words(count))
        if len(left):
            rows, places = np.divmod(left, count)
            out[rows, places] = np.searchsorted(self._cuts, draws.extra(rows, places), side="right")
        return out[:, 0] if count == 1 else out

    def exact(self) -> list[Fraction]:
        """The probabilities this table really has."""
        owned = np.bincount(self._slots[: self.filled], minlength=self.symbols)
        cuts = [0, *(int(cut) for cut in self._cuts), WORD]
        left = Fraction(SLOTS - self.filled, SLOTS)
        return [
            Fraction(int(owned[i]), SLOTS) + left * Fraction(cuts[i + 1] - cuts[i], WORD) for i in range(self.symbols)
        ]


class Bits:
    """Packed vectors of k independent bits, each 1 with probability p; eight of them per look-up.

    The layout is that of `PackedBits`.
    """

    def __init__(self, p: float, k: int) -> None:
        ones = np.bitwise_count(np.arange(256, dtype=np.uint8)).astype(int)
        one = Fraction(p)
        weights = [one**c * (1 - one) ** (8 - c) for c in range(9)]
        self._table = Table([float(weights[c]) for c in ones])
        self._layout = PackedBits(k)

    def sample(self, draws: Draws) -> Column:
        width = self._layout.bytes
        out = self._table.sample(draws, width).reshape(len(draws), width)
        out[:, -1] &= np.uint8(0xFF & ~self._layout.spare)
        return out


class Rows:
    """One distribution per input symbol: a channel matrix, sampled by inverting each row's cumulative sum."""

    def __init__(self, matrix: NDArray[np.float64]) -> None:
        self._cuts = np.stack([_cuts(_whole_numbers(row)) for row in matrix])

    def sample(self, rows: NDArray[np.integer], draws: Draws) -> Column:
        """One symbol for each row of `draws`, from the distribution of the symbol in `rows`: bisection, all at once."""
        words = draws.blocks(1).view("<u8")[:, 0]
        cuts, width = self._cuts.ravel(), self._cuts.shape[1]
        start = rows.astype(np.int64) * width
        below = np.zeros(len(words), dtype=np.int64)  # how many cuts of its row are known to be at or below the word
        for step in (1 << bit for bit in reversed(range(width.bit_length()))):
            further = below + step
            inside = further <= width
            at = np.where(inside, start + further - 1, 0)
            below = np.where(inside & (cuts.take(at) <= words), further, below)
        return below.astype(smallest_unsigned(width + 1))


@lru_cache(maxsize=64)
def uniform(count: int) -> Table:
    """All of `count` symbols alike."""
    return Table([1.0] * count)


def below(count: int, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """64 random bits each as a number below `count` (< 2^31): the upper half of their product, no remainder taken.

    >>> below(10, np.array([0, 1 << 63, (1 << 64) - 1], dtype=np.uint64)).tolist()
    [0, 5, 9]
    """
    half, factor = np.uint64(32), np.uint64(count)
    low = (words & np.uint64(0xFFFFFFFF)) * factor >> half
    return (((words >> half) * factor + low) >> half).astype(np.int64)


def _whole_numbers(floats: Sequence[float] | NDArray[np.float64]) -> list[int]:
    """The same proportions in whole numbers, exactly: a float is an integer over a power of two."""
    ratios = [float(x).as_integer_ratio() for x in floats]
    scale = max(denominator for _, denominator in ratios)
    return [numerator * (scale // denominator) for numerator, denominator in ratios]


def _cuts(weights: Sequence[int]) -> NDArray[np.uint64]:
    """Where [0, 2^64) is cut so that piece i has weights[i] of it (the last piece ends at 2^64)."""
    total = sum(weights)
    if total == 0:
        return np.zeros(len(weights) - 1, dtype=np.uint64)
    nearest = ((2 * running * WORD + total) // (2 * total) for running in accumulate(weights[:-1]))
    return np.array([min(WORD - 1, cut) for cut in nearest], dtype=np.uint64)
