"""Encodings (docs/device-protocol.md, "Answers"): a value becomes a cell, a cell a memo, a memo an answer.

    direct    the value is a symbol                      grr, geometric
    plane     the value is a cell of a grid              geo-grid
    unary     the value is the one bit set among k       sue, oue
    hashed    the value is hashed to g symbols           loloha
    fresh     the same with a new hash in every report   olh
    buckets   d of the k bits, the same d for life       dbitflip

Memos and answers are whole numbers: a symbol, or bits of which bit i is that of value i.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import mul
from typing import TYPE_CHECKING, Any

from hearsay_device.draws import Draws, Table, below, digest, uniform

if TYPE_CHECKING:
    from hearsay_device.questions import Question


class Encoding:
    """How the values of a question become answers to it."""

    def __init__(self, question: Question) -> None:
        self._of, self._kind, self._k, self._size = question, question.kind, question.k, question.size
        self._digits = hash_digits(question.kind, question.k, question.size)
        self._hashes = question.size**self._digits

    @property
    def digests(self) -> dict[str, list[str]]:
        """Of all tables, by what they are drawn for."""
        first, second, traits = [*self._of.first.tables], self._of.second, []
        if self._kind == "fresh":
            first = [uniform(self._size), *first]
        if self._of.fakes == "noisy":
            first.append(self._fakes)
        if self._kind == "hashed":
            mapped = [[self.cell(value, trait) for value in range(self._k)] for trait in range(self._hashes)]
            traits = [uniform(self._hashes).digest, digest(mapped)]
        if self._kind == "buckets":
            traits = [digest([range(self._k - self._size + 1, self._k + 1)], flat=True)]
        again = [] if second is None else second.tables
        return {"traits": traits, "first": [each.digest for each in first], "second": [each.digest for each in again]}

    @cached_property
    def _fakes(self) -> Table:
        """The values of fakes that get noise of their own."""
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
        if self._kind != "buckets":
            return None
        held: list[int] = []
        for last, long in enumerate(draws.longs(self._size), self._k - self._size):
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
        if fakes == "noisy":
            cell = self._fakes.one(draws.fork(2))
        if fakes == "zero":
            cell = self._size
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
        """Round 2."""
        return memo if self._of.second is None else int(self._of.second.one(memo, draws))

    def finish(self, answer: int, trait: Any) -> bytes:
        """The bytes of an answer: those of all bits, or the fewest of 1, 2, 4 or 8 that hold every symbol."""
        if self._of.bits:
            said = sum(1 << value for value in self.supports(answer, trait))
            return said.to_bytes(-(-self._k // 8), "little")
        symbols = self._hashes * self._size if self._of.parameter else self._k
        said = trait * self._size + answer if self._kind == "hashed" else answer
        return said.to_bytes(next(size for size in (1, 2, 4, 8) if symbols <= 1 << 8 * size), "little")

    def supports(self, answer: int, trait: Any) -> list[int]:
        """The values that an answer speaks for."""
        if self._kind == "hashed":
            return [value for value in range(self._k) if self.cell(value, trait) == answer]
        if self._kind == "fresh":
            hash_, symbol = self._written(answer // self._size), answer % self._size
            values = range(self._k)
            return [each for each in values if sum(map(mul, hash_, self._written(each))) % self._size == symbol]
        said = _ones(answer) if self._of.bits else [answer]
        return [trait[place] for place in said] if self._kind == "buckets" else said


def hash_digits(kind: str, k: int, g: int) -> int:
    """Of `hashed` as many as there are with g^digits <= 256; of `fresh` the fewest in which all k values differ."""
    if kind == "hashed":
        return next(digits for digits in range(8, 0, -1) if g**digits <= 256)
    return next(digits for digits in range(1, 64) if g**digits >= k) if kind == "fresh" else 0


def _ones(bits: int) -> list[int]:
    """Which bits are 1."""
    return [i for i, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]
