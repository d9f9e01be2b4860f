"""Derived randomness, and noise that is drawn with it: integers, no floats (docs/device-protocol.md, "Tables")."""

from __future__ import annotations

import hmac
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from math import ceil, floor, sqrt
from struct import pack, unpack
from typing import Any

from hearsay_device.errors import keys, need, number

SLOTS, WORD = 1 << 16, 1 << 64
ANYWHERE = 1 << 24  # of 2^64: the chance of each cell of a grid to be reported whatever the truth is
INVERSE_LN2 = 1.4426950408889634
COEFFICIENTS = list(accumulate(range(1, 18), lambda before, i: before / -i, initial=1.0))


def parts(*texts: str) -> bytes:
    """Of each text the length in UTF-8 (4 bytes, little-endian), then its bytes."""
    return b"".join(pack("<I", len(text)) + text for text in map(str.encode, texts))


def hashed(*texts: str) -> str:
    return sha256(parts(*texts)).hexdigest()


def bits_of(double: float) -> str:
    return pack(">d", double).hex()


def derived(key: bytes, *purpose: str) -> bytes:
    return hmac.digest(key, parts(*purpose), "sha256")[:16]


class Draws:
    """The random bits of one AES key and one tweak; other lanes have other bits."""

    def __init__(self, key: bytes, tweak: int = 0, lane: int = 0) -> None:
        self._key, self._tweak, self._lane = key, tweak, lane

    def fork(self, lane: int) -> Draws:
        return Draws(self._key, self._tweak, lane)

    def longs(self, count: int) -> tuple[int, ...]:
        """Numbers of 64 bits, two to a block."""
        return unpack(f"<{count}Q", self._blocks(0, 0, -(-count // 2))[: 8 * count])

    def words(self, count: int) -> tuple[int, ...]:
        """Numbers of 16 bits, eight to a block."""
        return unpack(f"<{count}H", self._blocks(1, 0, -(-count // 8))[: 2 * count])

    def further(self, place: int) -> int:
        """64 further bits for the word at a place."""
        return int.from_bytes(self._blocks(2, place, 1)[:8], "little")

    def all_further(self, count: int) -> tuple[int, ...]:
        """The same for all of the first places, at once."""
        blocks = self._blocks(2, 0, count)
        return unpack(f"<{2 * count}Q", blocks)[::2]

    def _blocks(self, kind: int, first: int, count: int) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # when it is first needed

        start = ((3 * self._lane + kind) << 24) + first
        counters = b"".join(pack("<QII", 0, self._tweak, start + i) for i in range(count))
        # ECB over counters that all differ is AES-CTR, read in any order.
        cipher = Cipher(algorithms.AES(self._key), modes.ECB()).encryptor()
        return cipher.update(counters) + cipher.finalize()


class Table:
    """One distribution over symbols, or a few of them (kinds) that are drawn with the same words."""

    def __init__(self, *distributions: Sequence[float]) -> None:
        weights = [whole_numbers(each) for each in distributions]
        totals = [sum(each) for each in weights]  # floats sum to 1 only nearly; shares of their sum are exact
        owned = [[weight * SLOTS // total for weight in each] for each, total in zip(weights, totals)]
        self.filled = min(map(sum, owned))  # the same for all kinds, so that it does not depend on the kind
        self._ends = [[min(end, self.filled) for end in accumulate(each)] for each in owned]
        self.slots = [[end - begin for begin, end in zip([0, *ends], ends)] for ends in self._ends]
        self.cuts = [
            cuts([weight * SLOTS - kept * total for weight, kept in zip(each, slots)])
            for each, slots, total in zip(weights, self.slots, totals)
        ]

    def digest(self) -> str:
        return digest([[*slots, *cut] for slots, cut in zip(self.slots, self.cuts)])

    def sample(self, draws: Draws, count: int, exempt: tuple[int, int] = (0, 0)) -> list[int]:
        """A symbol for each of `count` words; at the place exempt[0] from the distribution of kind exempt[1]."""
        found = []
        for place, word in enumerate(draws.words(count)):
            ends, drawn = (self._ends, word) if word < self.filled else (self.cuts, draws.further(place))
            found.append(bisect_right(ends[exempt[1] if place == exempt[0] else 0], drawn))
        return found

    def one(self, draws: Draws, kind: int = 0) -> int:
        return self.sample(draws, 1, (0, kind))[0]


def digest(rows: Sequence[Sequence[int]], flat: bool = False) -> str:
    """A hash of integers and of their shape; `flat`: of one row, which is a list."""
    shape = f"({len(rows[0])},)" if flat else f"({len(rows)}, {len(rows[0])})"
    return sha256(shape.encode() + b"".join(pack(f"<{len(row)}Q", *row) for row in rows)).hexdigest()


def whole_numbers(floats: Iterable[float]) -> list[int]:
    """The same proportions in whole numbers: a float is a whole number over a power of two."""
    ratios = [float(each).as_integer_ratio() for each in floats]
    scale = max(denominator for _, denominator in ratios)
    return [numerator * (scale // denominator) for numerator, denominator in ratios]


def cuts(weights: Sequence[int]) -> list[int]:
    """Where [0, 2^64) is cut so that piece i has weights[i] of it."""
    total = sum(weights) or WORD
    return [min(WORD - 1, (2 * running * WORD + total) // (2 * total)) for running in accumulate(weights[:-1])]


def bytes_of_bits(q: float, p: float | None = None) -> list[list[float]]:
    """A byte of independent bits, each 1 with probability q; of kind i, bit i - 1 is 1 with probability p instead."""
    kinds = [[q] * 8] + [[q] * bit + [p] + [q] * (7 - bit) for bit in range(8) if p is not None]
    distributions = []
    for bits in kinds:
        chances, scale = [1], 1
        for one, whole in (bit.as_integer_ratio() for bit in bits):
            chances = [rest * (whole - one) for rest in chances] + [rest * one for rest in chances]
            scale *= whole
        distributions.append([chance / scale for chance in chances])  # a quotient of whole numbers is rounded once
    return distributions


class Flip:
    """A round of noise that supports its input with p, and anything else with q: one of `size` symbols."""

    def __init__(self, given: Any, size: int, fakes: Sequence[float] = ()) -> None:
        keys(given, "p q", "probabilities")
        self.p, self.q, self._size, self._fakes = given["p"], given["q"], size, fakes
        need(number(self.p) and number(self.q) and 0 < self.q < self.p < 1, "probabilities")
        total = self.p + (size - 1) * self.q if type(self) is Flip else 1.0  # bits are drawn one by one
        need(abs(total - 1) < 1e-9, "probabilities")
        self.drawn = self.p / total, self.q / total  # a table draws shares of what it is given

    @cached_property
    def tables(self) -> list[Table]:
        """Of shifts, by 0 with p, by each other amount with q; and of fakes, which are symbols instead of shifts."""
        shifts = [self.p] + [self.q] * (self._size - 1)
        return [Table(shifts, self._fakes) if self._fakes else Table(shifts)]

    def one(self, symbol: int, draws: Draws) -> int:
        return (symbol + self.tables[0].one(draws)) % self._size


class Bits(Flip):
    """The same of `size` bits: that of the cell is 1 with p, all others with q; a cell may have no bit."""

    @cached_property
    def tables(self) -> list[Table]:
        return [Table(*bytes_of_bits(self.q, self.p))]

    def one(self, cell: int, draws: Draws) -> int:
        return self._sample(0, draws, (cell >> 3, 1 + (cell & 7)) if cell < self._size else (0, 0))

    def _sample(self, lane: int, draws: Draws, exempt: tuple[int, int] = (0, 0)) -> int:
        drawn = bytes(self.tables[lane].sample(draws.fork(lane), -(-self._size // 8), exempt))
        return int.from_bytes(drawn, "little") & (1 << self._size) - 1


class SecondBits(Bits):
    """Round 2 of bits: one that is 0 becomes one drawn with q, one that is 1 becomes one drawn with p."""

    @cached_property
    def tables(self) -> list[Table]:
        return [Table(*bytes_of_bits(each)) for each in ((self.q,) if self.p + self.q == 1 else (self.q, self.p))]

    def one(self, memo: int, draws: Draws) -> int:
        drawn = [self._sample(lane, draws) for lane in range(len(self.tables))]
        return memo ^ drawn[0] if len(drawn) == 1 else (drawn[0] & ~memo) | (drawn[1] & memo)


class Matrix:
    """A round over ordered values: entries by distance, `ends` in the columns of both ends, `inside` between."""

    def __init__(self, given: Any, k: int) -> None:
        keys(given, "ends inside", "probabilities")
        ends, inside = given["ends"], given["inside"]
        need(k <= 1024 and len(ends) == k and len(inside) == (k - 1 if k > 2 else 0), "values")
        need(all(number(each) and 0 <= each < 1 for each in (*ends, *inside)), "probabilities")
        need(ends[0] > 0 and (k == 2 or inside[0] > 0), "probabilities")
        self.size, self.numbers, self.tables = k, [*ends, *inside], [self]
        self._whole = whole_numbers(self.numbers)  # of one scale, which cuts do not depend on

    def row(self, symbol: int, numbers: Sequence[Any]) -> list[Any]:
        return [numbers[abs(symbol - each) + self.size * (0 < each < self.size - 1)] for each in range(self.size)]

    def digest(self) -> str:
        return digest([cuts(self.row(symbol, self._whole)) for symbol in range(self.size)])

    def one(self, symbol: int, draws: Draws) -> int:
        return bisect_right(cuts(self.row(symbol, self._whole)), draws.longs(1)[0])


class Move:
    """A round that displaces the cells of a grid, all alike; a cell side costs `rate`."""

    def __init__(self, given: Any, grid: Any) -> None:
        keys(given, "rate", "rate")
        self.rate, self._grid, self.tables = given["rate"], grid, [self]
        need(number(self.rate) and 0.05 <= self.rate <= 20, "rate")

    @cached_property
    def _cuts(self) -> list[int]:
        columns, rows = self._grid.columns, self._grid.rows
        bound = 1 + 2 * 1.4142135623730951 / self.rate
        bits = 62 - int(bound * bound + 1).bit_length()
        reach = ceil(bits / INVERSE_LN2 / self.rate) + 1
        law = [[0] * columns for _ in range(rows)]  # what is beyond the grid's size is added to the outermost
        for up in range(reach + 1):
            for across in range(reach + 1):
                weight = _weight(self.rate * sqrt(up * up + across * across), bits)
                law[min(up, rows - 1)][min(across, columns - 1)] += weight
        flat = [law[abs(up)][abs(across)] for up in range(1 - rows, rows) for across in range(1 - columns, columns)]
        total, share = sum(flat), WORD - ANYWHERE * columns * rows
        return [running * share // total for running in accumulate(flat)]

    def digest(self) -> str:
        return digest([self._cuts])

    def one(self, cell: int, draws: Draws) -> int:
        columns, rows = self._grid.columns, self._grid.rows
        word, other = draws.longs(2)
        drawn = bisect_right(self._cuts, word)
        if drawn == len(self._cuts):
            return int(other * columns * rows // WORD)
        up, across = divmod(drawn, 2 * columns - 1)
        return int(self._grid.nearest(cell // columns + up - (rows - 1), cell % columns + across - (columns - 1)))


def _weight(x: float, bits: int) -> int:
    """floor(e^-x 2^bits), by the same operations in the same order in every language."""
    n = floor(x * INVERSE_LN2)
    rest = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10  # the logarithm of 2, in two parts
    total = 0.0
    for coefficient in reversed(COEFFICIENTS):
        total = total * rest + coefficient
    return floor(total * 2.0 ** (bits - n))
