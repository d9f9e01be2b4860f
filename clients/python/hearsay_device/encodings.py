"""Encodings (docs/device-protocol.md, "Answers"): a value becomes a cell, a cell a memo, a memo an answer.

    direct    the value is a symbol                      grr, geometric
    plane     the value is a cell of a grid              geo-grid
    unary     the value is the one bit set among k       sue, oue
    hashed    the value is hashed to g symbols           loloha
    fresh     the same with a new hash in every report   olh
    buckets   d of the k bits, the same d for life       dbitflip

Round 1 is drawn with values in the question's own order; `to_survey` puts memo and trait into the survey's, in which
round 2 is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import mul
from typing import Any, Union

from hearsay_device.draws import Draws
from hearsay_device.places import Displacement, Grid
from hearsay_device.tables import Rows, Table, below, digest, eight_bits, flat_digest, uniform

Digests = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Flip:
    """A round that supports its input with p, and anything else with q."""

    p: float
    q: float

    def then(self, other: Flip) -> Flip:
        gain = other.p - other.q
        return Flip(self.p * gain + other.q, self.q * gain + other.q)


@dataclass(frozen=True)
class Matrix:
    """A round over ordered values: entries by distance, in the columns of both ends and in those between."""

    ends: tuple[float, ...] = field(repr=False)
    inside: tuple[float, ...] = field(repr=False)


@dataclass(frozen=True)
class Move:
    """A round that displaces the cells of a grid; a cell side costs `rate`."""

    rate: float


Round = Union[Flip, Matrix, Move]


@dataclass(frozen=True)
class Fakes:
    """What a fake answer is: `zero` (no value), `bare` (a drawn value), `noisy` (a drawn value with round 1)."""

    kind: str
    shares: tuple[float, ...] = field(repr=False)
    prior: bool
    """Whether the shares are a declared prior."""


class Direct:
    """One symbol of k."""

    def __init__(
        self, k: int, first: Round, second: Round | None, fakes: Fakes | None = None, grid: Grid | None = None
    ) -> None:
        self.k, self._rounds, self._fakes, self._grid = k, (first, second), fakes, grid

    @cached_property
    def _first(self) -> Any:
        return self._noise(self._rounds[0], self._fakes)

    @cached_property
    def _second(self) -> Any:
        return self._noise(self._rounds[1], None)

    @cached_property
    def _drawn(self) -> Table:
        assert self._fakes is not None
        return Table(self._fakes.shares)

    @property
    def digests(self) -> Digests:
        drawn = [self._drawn.digest] if self._fakes is not None and self._fakes.kind == "noisy" else []
        second = () if self._rounds[1] is None else (self._second.digest,)
        return {"traits": (), "first": (self._first.digest, *drawn), "second": second}

    def trait(self, draws: Draws) -> Any:
        """What the device keeps for life and shows."""
        return None

    def cell(self, value: int, trait: Any) -> int:
        return value

    def memoise(self, cell: int, own: bool, draws: Draws) -> int:
        """Round 1. Not `own`: a fake stands in for the value."""
        if not own and self._fakes is not None and self._fakes.kind == "bare":
            return int(self._first.one(draws, 1))
        return self._perturbed(cell if own else self._drawn.one(draws.fork(2)), self._first, draws)

    def to_survey(self, memo: int, trait: Any, order: Sequence[int]) -> tuple[int, Any]:
        return order[memo], trait

    def perturb(self, memo: int, draws: Draws) -> int:
        return memo if self._rounds[1] is None else self._perturbed(memo, self._second, draws)

    def finish(self, answer: int, trait: Any) -> bytes:
        return symbol_bytes(answer, self.k)

    def supports(self, answer: int, trait: Any) -> list[int]:
        return [answer]

    def _perturbed(self, symbol: int, noise: Any, draws: Draws) -> int:
        return (symbol + noise.one(draws)) % self.k if isinstance(noise, Table) else int(noise.one(symbol, draws))

    def _noise(self, numbers: Round | None, fakes: Fakes | None) -> Table | Rows | Displacement:
        """A flip is a shift: by 0 with p, by each other amount with q. So one table serves all symbols."""
        if isinstance(numbers, Move):
            assert self._grid is not None
            return Displacement(self._grid, numbers.rate)
        if isinstance(numbers, Matrix):
            return Rows(numbers.ends, numbers.inside)
        assert numbers is not None
        truth = [numbers.p] + [numbers.q] * (self.k - 1)
        return Table(truth, fakes.shares) if fakes is not None and fakes.kind == "bare" else Table(truth)


class Unary:
    """One bit set among k; bit i is bit i % 8 of byte i // 8, and spare bits are 0."""

    def __init__(self, k: int, first: Flip, second: Flip | None, fakes: Fakes | None = None) -> None:
        self.k, self._first, self._second, self._fakes = k, first, second, fakes
        self._bytes = -(-k // 8)
        self._drawn = Table(fakes.shares) if fakes is not None and fakes.kind == "noisy" else None

    @property
    def digests(self) -> Digests:
        first, second = [eight_bits(self._first.q, self._first.p).digest], []
        if self._drawn is not None:
            first.append(self._drawn.digest)
        if self._second is not None:
            second.append(eight_bits(self._second.q).digest)
            if self._second.p + self._second.q != 1:
                second.append(eight_bits(self._second.p).digest)
        return {"traits": (), "first": tuple(first), "second": tuple(second)}

    def trait(self, draws: Draws) -> Any:
        return None

    def cell(self, value: int, trait: Any) -> int:
        return value

    def memoise(self, cell: int, own: bool, draws: Draws) -> bytes:
        """Every bit is 1 with probability q, except the cell's own, if there is one, which is 1 with p."""
        there = own and cell < self.k
        if not own and self._drawn is not None:
            cell, there = self._drawn.one(draws.fork(2)), True
        exempt = (cell >> 3, 1 + (cell & 7)) if there else (0, 0)
        return self._cleared(eight_bits(self._first.q, self._first.p).sample(draws, self._bytes, exempt))

    def to_survey(self, memo: bytes, trait: Any, order: Sequence[int]) -> tuple[bytes, Any]:
        return set_bits(self.k, [order[place] for place in self._ones(memo)]), trait

    def perturb(self, memo: bytes, draws: Draws) -> bytes:
        if self._second is None:
            return memo
        flips = eight_bits(self._second.q).sample(draws, self._bytes)
        if self._second.p + self._second.q != 1:  # ones are flipped with 1 - p, not with q
            stay = eight_bits(self._second.p).sample(draws.fork(1), self._bytes)
            flips = [flip ^ (byte & (flip ^ ~kept)) for flip, byte, kept in zip(flips, memo, stay)]
        return bytes(flip ^ byte for flip, byte in zip(self._cleared(flips), memo))

    def finish(self, answer: bytes, trait: Any) -> bytes:
        return answer

    def supports(self, answer: bytes, trait: Any) -> list[int]:
        return self._ones(answer)

    def _ones(self, given: bytes) -> list[int]:
        return [i for i in range(self.k) if given[i >> 3] >> (i & 7) & 1]

    def _cleared(self, given: Sequence[int]) -> bytes:
        used = (self.k - 1) % 8 + 1
        return bytes([*(byte & 0xFF for byte in given[:-1]), given[-1] & (1 << used) - 1])


class Hashed(Direct):
    """A value hashed to one of g symbols by a hash kept for life.

    Hash x maps value i to the inner product of x, written as digits of base g, with the i-th point: the i-th row of
    digits whose first digit other than 0 is 1.
    """

    def __init__(self, k: int, g: int, first: Round, second: Round | None) -> None:
        super().__init__(g, first, second)
        digits = most_digits(g)
        self._rows = [[number // g**i % g for i in reversed(range(digits))] for number in range(g**digits)]
        self._points = [row for row in self._rows if next((digit for digit in row if digit), 0) == 1][:k]

    @property
    def digests(self) -> Digests:
        hashes = [[self.cell(i, x) for i in range(len(self._points))] for x in range(len(self._rows))]
        return {**super().digests, "traits": (uniform(len(self._rows)).digest, digest(hashes))}

    def trait(self, draws: Draws) -> int:
        return uniform(len(self._rows)).one(draws)

    def cell(self, value: int, trait: int) -> int:
        return int(sum(map(mul, self._rows[trait], self._points[value])) % self.k)

    def to_survey(self, memo: int, trait: int, order: Sequence[int]) -> tuple[int, int]:
        return memo, trait

    def finish(self, answer: int, trait: int) -> bytes:
        return symbol_bytes(trait * self.k + answer, len(self._rows) * self.k)

    def supports(self, answer: int, trait: int) -> list[int]:
        return [i for i in range(len(self._points)) if self.cell(i, trait) == answer]


class Fresh(Direct):
    """A value hashed to one of g symbols by a hash that is drawn for the report; both are digits of base g."""

    def __init__(self, k: int, g: int, first: Round) -> None:
        super().__init__(g, first, None)
        self._values, self._digits = k, fresh_digits(k, g)

    @property
    def digests(self) -> Digests:
        return {**super().digests, "first": (uniform(self.k).digest, *super().digests["first"])}

    def memoise(self, cell: int, own: bool, draws: Draws) -> int:
        hash_ = 0
        for digit in uniform(self.k).sample(draws.fork(1), self._digits):
            hash_ = hash_ * self.k + digit
        return hash_ * self.k + super().memoise(self._hashed(hash_, cell), own, draws)

    def to_survey(self, memo: int, trait: Any, order: Sequence[int]) -> tuple[int, Any]:
        return memo, trait

    def finish(self, answer: int, trait: Any) -> bytes:
        return symbol_bytes(answer, self.k ** (self._digits + 1))

    def supports(self, answer: int, trait: Any) -> list[int]:
        hash_, symbol = divmod(answer, self.k)
        return [value for value in range(self._values) if self._hashed(hash_, value) == symbol]

    def _hashed(self, hash_: int, value: int) -> int:
        total = 0
        for _ in range(self._digits):
            (hash_, one), (value, other) = divmod(hash_, self.k), divmod(value, self.k)
            total += one * other
        return total % self.k


class Buckets(Unary):
    """Bits of d of the values, held for life; the last cell stands for all values that are not held."""

    def __init__(self, k: int, d: int, first: Flip, second: Flip | None) -> None:
        super().__init__(d, first, second)
        self._values = k

    @property
    def digests(self) -> Digests:
        return {**super().digests, "traits": (flat_digest(range(self._values - self.k + 1, self._values + 1)),)}

    def trait(self, draws: Draws) -> list[int]:
        """Floyd's algorithm: every set of d values is equally likely."""
        held: list[int] = []
        for last, long in zip(range(self._values - self.k, self._values), draws.longs(self.k)):
            pick = below(last + 1, long)
            held.append(last if pick in held else pick)
        return sorted(held)

    def cell(self, value: int, trait: list[int]) -> int:
        return trait.index(value) if value in trait else self.k

    def to_survey(self, memo: bytes, trait: list[int], order: Sequence[int]) -> tuple[bytes, list[int]]:
        return memo, [order[place] for place in trait]

    def finish(self, answer: bytes, trait: list[int]) -> bytes:
        return set_bits(self._values, self.supports(answer, trait))

    def supports(self, answer: bytes, trait: list[int]) -> list[int]:
        return [trait[place] for place in self._ones(answer)]


def symbol_bytes(symbol: int, count: int) -> bytes:
    """A symbol in the fewest of 1, 2, 4 or 8 bytes that hold 0 .. count - 1, little-endian."""
    return symbol.to_bytes(next(size for size in (1, 2, 4, 8) if count <= 1 << 8 * size), "little")


def set_bits(k: int, ones: Sequence[int]) -> bytes:
    return sum(1 << one for one in ones).to_bytes(-(-k // 8), "little")


def most_digits(g: int) -> int:
    """The largest number of digits with g^digits <= 256."""
    return next(digits for digits in range(8, 0, -1) if g**digits <= 256)


def fresh_digits(k: int, g: int) -> int:
    """The fewest digits of base g in which every one of k values can be written."""
    return next(digits for digits in range(1, 64) if g**digits >= k)
