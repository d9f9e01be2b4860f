"""Exact sampling from integers (docs/device-protocol.md, "Tables"). No float is compared."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate
from struct import pack

from hearsay_device.draws import Draws

SLOTS = 1 << 16
WORD = 1 << 64
Integers = Sequence[int]


class Table:
    """One distribution over symbols, or a few of them (kinds) that are drawn with the same words.

    >>> Table([0.75, 0.25]).digest == Table([3.0, 1.0]).digest
    True
    """

    def __init__(self, *distributions: Sequence[float]) -> None:
        weights = [whole_numbers(each) for each in distributions]
        totals = [sum(each) for each in weights]
        owned = [[weight * SLOTS // total for weight in each] for each, total in zip(weights, totals)]
        self._filled = min(map(sum, owned))  # the same for all kinds, so that it does not depend on the kind
        self._owned = [_kept(each, self._filled) for each in owned]
        self._cuts = [
            cuts([weight * SLOTS - own * total for weight, own in zip(each, kept)])
            for each, kept, total in zip(weights, self._owned, totals)
        ]
        self._ends = [list(accumulate(kept)) for kept in self._owned]

    @property
    def digest(self) -> str:
        return digest([[*owned, *cut] for owned, cut in zip(self._owned, self._cuts)])

    def sample(self, draws: Draws, count: int, exempt: tuple[int, int] = (0, 0)) -> list[int]:
        """A symbol for each of `count` words; at the place exempt[0] from the distribution of kind exempt[1]."""
        found = []
        for place, word in enumerate(draws.words(count)):
            kind = exempt[1] if place == exempt[0] else 0
            if word < self._filled:
                found.append(bisect_right(self._ends[kind], word))
            else:
                found.append(bisect_right(self._cuts[kind], draws.further(place)))
        return found

    def one(self, draws: Draws, kind: int = 0) -> int:
        return self.sample(draws, 1, (0, kind))[0]


class Rows:
    """One distribution per input symbol, by distance: `ends` in the columns of both ends, `inside` between."""

    def __init__(self, ends: Sequence[float], inside: Sequence[float]) -> None:
        whole = whole_numbers([*ends, *inside])  # of one scale, which cuts do not depend on
        self._ends, self._inside = whole[: len(ends)], whole[len(ends) :]

    @property
    def digest(self) -> str:
        return digest([self._row(symbol) for symbol in range(len(self._ends))])

    def one(self, symbol: int, draws: Draws) -> int:
        return bisect_right(self._row(symbol), draws.longs(1)[0])

    def _row(self, symbol: int) -> list[int]:
        return cuts(by_distance(symbol, self._ends, self._inside))


def by_distance(row: int, ends: Sequence[float], inside: Sequence[float]) -> list[float]:
    """A row of a matrix whose entries depend on the distance from the diagonal, in the outer and inner columns."""
    last = len(ends) - 1
    return [(ends if column in (0, last) else inside)[abs(row - column)] for column in range(last + 1)]


@lru_cache(maxsize=64)
def uniform(count: int) -> Table:
    return Table([1.0] * count)


@lru_cache(maxsize=64)
def eight_bits(q: float, p: float | None = None) -> Table:
    """A byte of independent bits, each 1 with probability q; of kind i, bit i - 1 is 1 with probability p instead."""
    own = [] if p is None else [[q] * bit + [p] + [q] * (7 - bit) for bit in range(8)]
    return Table(*(_independent(bits) for bits in [[q] * 8, *own]))


def digest(rows: Sequence[Integers]) -> str:
    """A hash of integers and of their shape."""
    hashed = sha256(f"({len(rows)}, {len(rows[0])})".encode())
    for row in rows:
        hashed.update(pack(f"<{len(row)}Q", *row))
    return hashed.hexdigest()


def flat_digest(row: Integers) -> str:
    """The same of one list."""
    return sha256(f"({len(row)},)".encode() + pack(f"<{len(row)}Q", *row)).hexdigest()


def below(count: int, long: int) -> int:
    """64 random bits as a number below `count`: the upper half of their product.

    >>> [below(10, long) for long in (0, 1 << 63, (1 << 64) - 1)]
    [0, 5, 9]
    """
    return long * count >> 64


def whole_numbers(floats: Sequence[float]) -> list[int]:
    """The same proportions in whole numbers: a float is a whole number over a power of two."""
    ratios = [each.as_integer_ratio() for each in map(float, floats)]
    scale = max(denominator for _, denominator in ratios)
    return [numerator * (scale // denominator) for numerator, denominator in ratios]


def cuts(weights: Sequence[float]) -> list[int]:
    """Where [0, 2^64) is cut so that piece i has weights[i] of it; weights are whole numbers."""
    total = sum(weights)
    if total == 0:
        return [0] * (len(weights) - 1)
    return [min(WORD - 1, int((2 * running * WORD + total) // (2 * total))) for running in accumulate(weights[:-1])]


def _kept(owned: Integers, filled: int) -> list[int]:
    """How many of its slots each symbol keeps if only the first `filled` of all are used."""
    ends = [min(end, filled) for end in accumulate(owned, initial=0)]
    return [end - begin for begin, end in zip(ends, ends[1:])]


def _independent(bits: Sequence[float]) -> list[float]:
    """The distribution of a byte whose bits are 1 with these probabilities, each chance rounded once."""
    found, scale = [1], 1
    for one, whole in (bit.as_integer_ratio() for bit in bits):
        found = [rest * (whole - one) for rest in found] + [rest * one for rest in found]
        scale *= whole
    return [chance / scale for chance in found]  # a quotient of whole numbers is rounded once
