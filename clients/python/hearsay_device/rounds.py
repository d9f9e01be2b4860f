"""Rounds of noise: their numbers, read from terms, and how they are drawn. Those on places are in places.py."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from hearsay_device.checks import keys, need, number
from hearsay_device.draws import Draws, Table, cuts, digest, eight_bits, whole_numbers

MAX_ORDERED = 1024


class Flip:
    """A round that supports its input with p, and anything else with q: one of `symbols`, or (0) a bit."""

    def __init__(self, given: Any, symbols: int = 0) -> None:
        keys(given, "p q", "probabilities")
        self.p, self.q = given["p"], given["q"]
        need(number(self.p) and number(self.q) and 0 < self.q < self.p < 1, "probabilities")
        total = self.p + (symbols - 1) * self.q if symbols else 1.0
        need(abs(total - 1) < 1e-9, "probabilities")
        self.drawn = self.p / total, self.q / total  # a table draws shares of the sum of what it is given


class Shift(Flip):
    """A flip of symbols: a shift by 0 with p, by each other amount with q. So one table serves all symbols.

    `fakes` are the shares of symbols that are drawn with the same words, instead of a shift.
    """

    def __init__(self, given: Any, symbols: int, fakes: Sequence[float] = ()) -> None:
        super().__init__(given, symbols)
        self._symbols, self._fakes = symbols, fakes

    @cached_property
    def tables(self) -> list[Table]:
        shifts = [self.p] + [self.q] * (self._symbols - 1)
        return [Table(shifts, self._fakes) if self._fakes else Table(shifts)]

    def one(self, symbol: int, draws: Draws) -> int:
        return (symbol + self.tables[0].one(draws)) % self._symbols


class Bits(Flip):
    """A flip of bits, of which the cell's own is 1 with p, all others with q; a cell may have none."""

    def __init__(self, given: Any, size: int) -> None:
        super().__init__(given)
        self._size = size

    @cached_property
    def tables(self) -> list[Table]:
        return [eight_bits(self.q, self.p)]

    def one(self, cell: int, draws: Draws) -> int:
        return self._sample(self.tables[0], draws, (cell >> 3, 1 + (cell & 7)) if cell < self._size else (0, 0))

    def _sample(self, table: Table, draws: Draws, exempt: tuple[int, int] = (0, 0)) -> int:
        drawn = bytes(table.sample(draws, -(-self._size // 8), exempt))
        return int.from_bytes(drawn, "little") & (1 << self._size) - 1


class BitsAgain(Bits):
    """The second round: a bit that is 0 becomes one drawn with q, a bit that is 1 one drawn with p."""

    @cached_property
    def tables(self) -> list[Table]:
        return [eight_bits(self.q)] if self.p + self.q == 1 else [eight_bits(self.q), eight_bits(self.p)]

    def one(self, memo: int, draws: Draws) -> int:
        drawn = [self._sample(table, draws.fork(lane)) for lane, table in enumerate(self.tables)]
        return memo ^ drawn[0] if len(drawn) == 1 else (drawn[0] & ~memo) | (drawn[1] & memo)


class Matrix:
    """A round over ordered values: entries by distance, `ends` in the columns of both ends, `inside` between.

    It is its own table: the cuts of each row's probabilities.
    """

    def __init__(self, given: Any, k: int) -> None:
        keys(given, "ends inside", "probabilities")
        ends, inside = given["ends"], given["inside"]
        need(k <= MAX_ORDERED and len(ends) == k and len(inside) == (k - 1 if k > 2 else 0), "values")
        need(all(number(each) and 0 <= each < 1 for each in (*ends, *inside)), "probabilities")
        need(ends[0] > 0 and (k == 2 or inside[0] > 0), "probabilities")
        self._k, self._numbers, self.tables = k, [*ends, *inside], [self]
        self._whole = whole_numbers(self._numbers)  # of one scale, which cuts do not depend on

    def rows(self) -> list[list[float]]:
        """The probabilities."""
        rows = [self._row(symbol, self._numbers) for symbol in range(self._k)]
        return [[each / total for each in row] for row, total in zip(rows, map(sum, rows))]

    @property
    def digest(self) -> str:
        return digest([cuts(self._row(symbol, self._whole)) for symbol in range(self._k)])

    def one(self, symbol: int, draws: Draws) -> int:
        return bisect_right(cuts(self._row(symbol, self._whole)), draws.longs(1)[0])

    def _row(self, symbol: int, numbers: Sequence[Any]) -> list[Any]:
        last = self._k - 1
        return [numbers[abs(symbol - column) + self._k * (0 < column < last)] for column in range(self._k)]
