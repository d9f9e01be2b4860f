"""Exact sampling from integers (PROTOCOLS 8): no float is compared, no remainder is taken.

A distribution over m symbols becomes a table of 2^16 slots. Symbol i owns floor(P_i 2^16) of them, and the slots that
are left over are resolved by 64 further bits among the symbols' remainders. One look-up is enough for nearly every
draw, and the probabilities are exact to 2^-64.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise

import numpy as np

from hearsay_device.draws import SLOTS, bytes_of_bits, cuts, whole_numbers
from hearsay_device.draws import Table as DeviceTable
from protocols.arrays.aliases import Column, Floats, Mask, Whole, Words
from protocols.arrays.columns import smallest_unsigned
from protocols.randomness.keystream import Draws

Probabilities = Sequence[float] | Floats
Exempt = tuple[Whole, Mask]
"""For each row a cell, and whether it is there: then the row's symbol `cell // 8` is of the kind `1 + cell % 8`."""

AT_ONCE = 1 << 18  # symbols that are drawn together: their words stay in a core's cache


class Table:
    """An exact sampler of one distribution, or of a few of them.

    >>> from protocols.randomness.keystream import Keyring
    >>> coin = Table([0.75, 0.25])
    >>> draws = Keyring(bytes(32)).draws(("coin",), np.arange(100_000, dtype=np.uint64))
    >>> 24_000 < int(coin.sample(draws).sum()) < 26_000
    True
    """

    def __init__(self, *distributions: Probabilities) -> None:
        table = DeviceTable(*map(list, distributions))
        owned, self._cuts = (np.array(part, dtype=np.uint64) for part in (table.slots, table.cuts))
        self.integers = np.concatenate([owned, self._cuts], axis=1)
        """What symbols are drawn with, a row for each distribution: the slots each symbol owns, then the cuts."""
        self.filled, self.symbols = table.filled, owned.shape[1]
        self._slots: Column = np.zeros((len(owned), SLOTS), dtype=smallest_unsigned(self.symbols))
        for slots, counts in zip(self._slots, table.slots, strict=True):
            slots[: self.filled] = np.repeat(np.arange(self.symbols), counts)

    def sample(self, draws: Draws, count: int | None = None, exempt: Exempt | None = None, spare: int = 0) -> Column:
        """A symbol for each row of `draws`, or a row of `count` symbols, of the first distribution.

        `exempt` names a symbol of each row, and its kind: the distribution to draw it from instead. The spare bits of
        each row's last symbol are cleared.
        """
        if count is None:
            return self.sample(draws, 1, exempt, spare).reshape(-1)
        symbols: Column = np.empty((len(draws), count), dtype=self._slots.dtype)
        step = max(1, AT_ONCE // count)
        for first in range(0, len(draws), step):
            rows = slice(first, first + step)
            some = None if exempt is None else (exempt[0][rows], exempt[1][rows])
            symbols[rows] = self._drawn(draws[rows], count, some)
        if spare:
            symbols[:, -1] &= ~symbols.dtype.type(spare)
        return symbols

    def _drawn(self, draws: Draws, count: int, exempt: Exempt | None) -> Column:
        words = draws.words(count)
        symbols: Column = self._slots[0].take(words)
        if exempt is not None:
            own = np.flatnonzero(exempt[1])
            places, kinds = np.divmod(exempt[0][own], 8)
            symbols[own, places] = self._slots[1 + kinds, words[own, places]]
        if self.filled < SLOTS:
            rows, places = np.divmod(np.flatnonzero(words >= self.filled), count)
            kinds = np.zeros(len(rows), dtype=np.int64)
            if exempt is not None:
                cells, there = exempt[0][rows], exempt[1][rows]
                kinds = (there & (cells // 8 == places)) * (1 + cells % 8)
            symbols[rows, places] = invert(self._cuts, kinds, draws.further(rows, places))
        return symbols


@lru_cache(maxsize=64)
def uniform(count: int) -> Table:
    """`count` symbols with equal probabilities."""
    return Table([1.0] * count)


@lru_cache(maxsize=64)
def eight_bits(q: float, p: float | None = None) -> Table:
    """A byte of independent bits, each 1 with probability q; of kind i, bit i - 1 is 1 with probability p instead."""
    return Table(*bytes_of_bits(q, p))


def row_cuts(matrix: Floats) -> Words:
    """Of one distribution per input symbol: where [0, 2^64) is cut for each."""
    return np.array([cuts(whole_numbers(row)) for row in matrix], dtype=np.uint64)


def invert(cuts: Words, rows: Whole, words: Words) -> Column:
    """The symbol of each word: how many cuts of its row it is not below.

    >>> cuts = np.array([[10, 20], [5, 6]], dtype=np.uint64)
    >>> invert(cuts, np.array([0, 1]), np.array([10, 4], dtype=np.uint64)).tolist()
    [1, 0]
    """
    symbols: Column = np.empty(len(words), dtype=smallest_unsigned(cuts.shape[1] + 1))
    order = np.argsort(rows, kind="stable")
    ends = np.searchsorted(rows, np.arange(len(cuts) + 1), sorter=order)
    for row, (first, last) in enumerate(pairwise(ends.tolist())):
        some = order[first:last]
        symbols[some] = np.searchsorted(cuts[row], words[some], side="right")
    return symbols


def digest(integers: Words) -> str:
    """A hash of a table's integers and of its shape.

    >>> digest(Table([0.75, 0.25]).integers) == digest(Table([3.0, 1.0]).integers)
    True
    """
    return sha256(repr(integers.shape).encode() + integers.astype("<u8").tobytes()).hexdigest()


def below(count: int, words: Words) -> Whole:
    """64 random bits each as a number below `count` (< 2^31): the upper half of their product, no remainder taken.

    >>> below(10, np.array([0, 1 << 63, (1 << 64) - 1], dtype=np.uint64)).tolist()
    [0, 5, 9]
    """
    half, factor = np.uint64(32), np.uint64(count)
    low = (words & np.uint64(0xFFFFFFFF)) * factor >> half
    return (((words >> half) * factor + low) >> half).astype(np.int64)
