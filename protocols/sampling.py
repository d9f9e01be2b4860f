"""Exact sampling from integers (PROTOCOLS 8): no float is compared, no remainder is taken.

A distribution over m symbols becomes a table of 2^16 slots. Symbol i owns floor(P_i 2^16) of them, and the slots that
are left over are resolved by 64 further bits among the symbols' remainders. One look-up settles nearly every draw,
and the probabilities are exact to 2^-64.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from protocols.columns import Column, PackedBits, smallest_unsigned
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
        exact = [Fraction(float(p)) for p in probabilities]
        total = sum(exact, Fraction(0))
        shares = [p / total * SLOTS for p in exact]  # floats sum to 1 only nearly; shares sum to 2^16 exactly
        whole = [int(share) for share in shares]
        self.symbols = len(exact)
        self.filled = sum(whole)
        self._slots = np.zeros(SLOTS, dtype=smallest_unsigned(self.symbols))
        self._slots[: self.filled] = np.repeat(np.arange(self.symbols), whole)
        self._cuts = _cuts([share - w for share, w in zip(shares, whole, strict=True)])

    def sample(self, draws: Draws, count: int = 1) -> Column:
        """One symbol for each row of `draws` (`count` > 1: that many, as columns)."""
        words = draws.words(count)
        out: Column = self._slots.take(words)
        if self.filled < SLOTS:
            rows, places = np.nonzero(words >= self.filled)
            if len(rows):
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
        self._cuts = np.stack([_cuts([Fraction(float(p)) for p in row]) for row in matrix])

    def sample(self, rows: NDArray[np.integer], draws: Draws) -> Column:
        words = draws.blocks(1).view("<u8")[:, 0]
        out = np.empty(len(words), dtype=smallest_unsigned(self._cuts.shape[1] + 1))
        for symbol in np.unique(rows):
            here = rows == symbol
            out[here] = np.searchsorted(self._cuts[symbol], words[here], side="right")
        return out


def _cuts(weights: Sequence[Fraction]) -> NDArray[np.uint64]:
    """Where [0, 2^64) is cut so that piece i has weights[i] of it (the last piece ends at 2^64)."""
    total = sum(weights, Fraction(0))
    if total == 0:
        return np.zeros(len(weights) - 1, dtype=np.uint64)
    running, cuts = Fraction(0), []
    for weight in weights[:-1]:
        running += weight
        cuts.append(min(WORD - 1, round(running / total * WORD)))
    return np.array(cuts, dtype=np.uint64)
