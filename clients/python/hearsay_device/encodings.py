"""Encodings (docs/device-protocol.md, "Answers"): a value becomes a cell, a cell a memo, a memo an answer.

    direct    the value is a symbol                      grr, geometric
    plane     the value is a cell of a grid              geo-grid
    unary     the value is the one bit set among k       sue, oue
    hashed    the value is hashed to g symbols           loloha
    fresh     the same with a new hash in every report   olh
    buckets   d of the k bits, the same d for life       dbitflip

Memos and answers are whole numbers: a symbol, or bits of which bit i is that of value i. A round of noise makes a memo
of a cell, a second one an answer of the memo; rounds on places are in places.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from operator import mul
from typing import TYPE_CHECKING, Any

from hearsay_device.checks import keys, need, number
from hearsay_device.draws import Draws, Table, below, cuts, digest, eight_bits, uniform, whole_numbers

if TYPE_CHECKING:
    from hearsay_device.questions import Question


class Flip:
    """A round that supports its input with p, and anything else with q: one of `size` symbols."""

    def __init__(self, given: Any, size: int, fakes: Sequence[float] = ()) -> None:
        keys(given, "p q", "probabilities")
        self.p, self.q, self._size, self._fakes = given["p"], given["q"], size, fakes
        need(number(self.p) and number(self.q) and 0 < self.q < self.p < 1, "probabilities")
        need(abs(self._total - 1) < 1e-9, "probabilities")
        self.drawn = self.p / self._total, self.q / self._total  # a table draws shares of what it is given

    @property
    def _total(self) -> float:
        return float(self.p + (self._size - 1) * self.q)

    @cached_property
    def tables(self) -> list[Table]:
        """A flip is a shift, by 0 with p, by each other amount with q: so one table serves all symbols.

        `fakes` are the shares of symbols that are drawn with the same words instead.
        """
        shifts = [self.p] + [self.q] * (self._size - 1)
        return [Table(shifts, self._fakes) if self._fakes else Table(shifts)]

    def one(self, symbol: int, draws: Draws) -> int:
        return (symbol + self.tables[0].one(draws)) % self._size


class Bits(Flip):
    """The same of `size` bits: that of the cell is 1 with p, all others with q; a cell may have no bit."""

    _total = 1.0

    @cached_property
    def tables(self) -> list[Table]:
        return [eight_bits(self.q, self.p)]

    def one(self, cell: int, draws: Draws) -> int:
        return self._sample(0, draws, (cell >> 3, 1 + (cell & 7)) if cell < self._size else (0, 0))

    def _sample(self, lane: int, draws: Draws, exempt: tuple[int, int] = (0, 0)) -> int:
        drawn = bytes(self.tables[lane].sample(draws.fork(lane), -(-self._size // 8), exempt))
        return int.from_bytes(drawn, "little") & (1 << self._size) - 1


class SecondBits(Bits):
    """Round 2 of bits: one that is 0 becomes one drawn with q, one that is 1 becomes one drawn with p."""

    @cached_property
    def tables(self) -> list[Table]:
        return [eight_bits(self.q)] if self.p + self.q == 1 else [eight_bits(self.q), eight_bits(self.p)]

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
        columns = range(self.size)
        return [numbers[abs(symbol - each) + self.size * (0 < each < self.size - 1)] for each in columns]

    def digest(self) -> str:
        return digest([cuts(self.row(symbol, self._whole)) for symbol in range(self.size)])

    def one(self, symbol: int, draws: Draws) -> int:
        return bisect_right(cuts(self.row(symbol, self._whole)), draws.longs(1)[0])


class Encoding:
    """How the values of a question become answers to it."""

    def __init__(self, question: Question) -> None:
        self._of, self._kind, self._k, self._size = question, question.kind, question.k, question.size
        self._digits = hash_digits(question.kind, question.k, question.size)
        self._hashes = question.size**self._digits

    def digests(self) -> dict[str, list[str]]:
        """Of all tables, by what they are drawn for."""
        first, second, traits = [*self._of.first.tables], self._of.second, []
        if self._kind == "fresh":
            first = [uniform(self._size), *first]
        if self._of.fakes == "noisy":
            first.append(self._fakes)
        if self._kind == "hashed":
            mapped = [[self.cell(value, trait) for value in range(self._k)] for trait in range(self._hashes)]
            traits = [uniform(self._hashes).digest(), digest(mapped)]
        if self._kind == "buckets":
            traits = [digest([range(self._k - self._size + 1, self._k + 1)], flat=True)]
        rounds = {"first": first, "second": [] if second is None else second.tables}
        return {"traits": traits, **{part: [each.digest() for each in tables] for part, tables in rounds.items()}}

    @cached_property
    def _fakes(self) -> Table:
        return Table(self._of.fake_shares)

    @cached_property
    def _points(self) -> list[list[int]]:
        """What `hashed` multiplies a hash with, by value: rows of digits whose first digit other than 0 is 1."""
        rows = map(self._written, range(self._hashes))
        return [row for row in rows if next(filter(None, row), 0) == 1][: self._k]

    def _written(self, number: int) -> list[int]:
        """In digits of base g, most significant first."""
        return [number // self._size**i % self._size for i in reversed(range(self._digits))]

    def trait(self, draws: Draws) -> Any:
        """What a device keeps for life and shows: the hash of `hashed`, the values that `buckets` hold."""
        if self._kind == "hashed":
            return uniform(self._hashes).one(draws)
        held: list[int] = []
        for last, long in enumerate(draws.longs(self._size if self._kind == "buckets" else 0), self._k - self._size):
            pick = below(last + 1, long)  # Floyd's algorithm: every set is equally likely
            held.append(last if pick in held else pick)
        return sorted(held)

    def cell(self, value: int, trait: Any) -> int:
        """What is memoised for a value; the last cell of buckets stands for all values that are not held."""
        if self._kind == "hashed":
            return int(sum(map(mul, self._written(trait), self._points[value])) % self._size)
        if self._kind == "buckets":
            return int(trait.index(value)) if value in trait else self._size
        return value

    def memoise(self, cell: int, own: bool, draws: Draws) -> int:
        """Round 1, with values in the question's own order. Not `own`: a fake stands in for the value."""
        fakes, hash_ = None if own else self._of.fakes, []
        if fakes == "bare":
            return int(self._of.first.tables[0].one(draws, 1))
        if fakes is not None:
            cell = self._fakes.one(draws.fork(2)) if fakes == "noisy" else self._size
        if self._kind == "fresh":
            hash_ = uniform(self._size).sample(draws.fork(1), self._digits)
            cell = sum(map(mul, hash_, self._written(cell))) % self._size
        memo = 0
        for digit in (*hash_, self._of.first.one(cell, draws)):
            memo = memo * self._size + digit
        return memo

    def to_survey(self, memo: int, trait: Any, order: Sequence[int]) -> tuple[int, Any]:
        """Memo and trait with values in the survey's order, in which round 2 is drawn."""
        if self._kind == "buckets":
            return memo, [order[place] for place in trait]
        if self._kind == "unary":
            return sum(1 << order[place] for place in _ones(memo)), trait
        return order[memo] if self._kind == "direct" else memo, trait

    def perturb(self, memo: int, draws: Draws) -> int:
        return memo if self._of.second is None else int(self._of.second.one(memo, draws))

    def finish(self, answer: int, trait: Any) -> bytes:
        """The bytes of an answer: those of all bits, or the fewest of 1, 2, 4 or 8 that hold every symbol."""
        if self._of.bits:
            return sum(1 << value for value in self.supports(answer, trait)).to_bytes(-(-self._k // 8), "little")
        symbols = self._hashes * self._size
        said = trait * self._size + answer if self._kind == "hashed" else answer
        return said.to_bytes(next(size for size in (1, 2, 4, 8) if symbols <= 1 << 8 * size), "little")

    def supports(self, answer: int, trait: Any) -> list[int]:
        """The values that an answer speaks for."""
        values = range(self._k)
        if self._kind == "hashed":
            return [value for value in values if self.cell(value, trait) == answer]
        if self._kind == "fresh":
            hash_, symbol = self._written(answer // self._size), answer % self._size
            return [each for each in values if sum(map(mul, hash_, self._written(each))) % self._size == symbol]
        said = _ones(answer) if self._of.bits else [answer]
        return [trait[place] for place in said] if self._kind == "buckets" else said


def hash_digits(kind: str, k: int, g: int) -> int:
    """Of `hashed` as many as there are with g^digits <= 256; of `fresh` the fewest in which all k values differ."""
    if kind == "hashed":
        return next(digits for digits in range(8, 0, -1) if g**digits <= 256)
    return next(digits for digits in range(1, 64) if g**digits >= k) if kind == "fresh" else 0


def _ones(bits: int) -> list[int]:
    return [i for i, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]
