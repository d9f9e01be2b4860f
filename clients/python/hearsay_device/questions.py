"""Questions (docs/device-protocol.md, "Answers"): a value becomes a cell, a cell a memo, a memo an answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from operator import mul
from typing import Any

from hearsay_device.attributes import MAX_VALUES, Attribute, Grid
from hearsay_device.draws import WORD, Bits, Draws, Flip, Matrix, Move, SecondBits, Table, digest, hashed
from hearsay_device.errors import keys, need, one_of, whole

PARTS = ("traits", "first", "second")
MOST_HASHES = 1 << 23  # of `fresh`
FRESH_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
MAX_ORDERED_TWICE = 256  # values, with two rounds


class Question:
    """One attribute, or a cross of two (`sources`), as it is asked. Surveys that ask the same share its memos.

    Of sets, `values` are those of the attribute (`items`), and `several` paddings.

    `parameter` is g of hashes, d of buckets, the slots of thresholds, otherwise 0; `size` how many symbols or bits a
    memo has; `states` how many memos a device can ever have; `share` the chance that a device draws and shows this
    question; `fakes` what a fake is: `zero` (no value), `bare` (a drawn value), `noisy` (a drawn value with round 1).
    """

    def __init__(self, given: Any, sources: Sequence[Attribute], solution: str, share: float) -> None:
        keys(given, "encoding fakes first mechanism second tables", "question")
        self.sources, self.share, self.grid = sources, share, sources[0].grid
        self.name = "*".join(source.name for source in sources)
        self.values = ["*".join(each) for each in product(*(source.values for source in sources))]
        self.items, self.several = len(self.values), sources[0].several
        self.values += [f"{size} or fewer" for size in reversed(range(self.several if self.several > 1 else 0))]
        self.k = len(self.values)
        need(len(set(self.values)) == self.k, "crosses")
        self.kind, self.parameter, self._digits = _encoding(given["encoding"], self.k, self.grid)
        need((self.kind == "plane") == sources[0].placed, "geo")
        need(self.several == 1 or (len(sources) == 1 and self.kind in ("direct", "unary")), "several")
        need(self.kind == "fresh" or self.k <= MAX_VALUES, "values")
        self.bits = self.kind in ("unary", "buckets")
        self.size = 2 if self.kind == "threshold" else self.parameter or self.k
        self.hashes = self.parameter if self.kind == "threshold" else self.size**self._digits
        self.states = min(self.k, self.size + (self.kind == "buckets"))
        self.ordered = self.kind == "direct" and "ends" in given["first"]
        need(not self.ordered or self.several == 1, "several")
        self.fakes = None
        if solution.startswith("rs"):
            kinds = {"direct": ("bare", "noisy"), "unary": ("zero", "noisy") if solution == "rs+fd" else ("noisy",)}
            need(not self.ordered, "fakes")
            self.fakes = one_of(given["fakes"], kinds.get(self.kind, ()), "fakes")
        need(self.fakes == given["fakes"], "fakes")
        self._fake_shares = sources[0].prior or (1 / self.k,) * self.k
        self.first = self._round(given["first"], Bits, self._fake_shares if self.fakes == "bare" else ())
        self.second = None if given["second"] is None else self._round(given["second"], SecondBits)
        need(not self.ordered or self.second is None or self.k <= MAX_ORDERED_TWICE, "values")
        keys(given["tables"], " ".join(PARTS), "tables")
        self.tables = {part: given["tables"][part] for part in PARTS}

    def _round(self, given: Any, bits: type[Bits], fakes: Sequence[float] = ()) -> Any:
        if self.kind == "plane" and self.grid is not None:
            return Move(given, self.grid)
        return Matrix(given, self.k) if self.ordered else (bits if self.bits else Flip)(given, self.size, fakes)

    @cached_property
    def order(self) -> Sequence[int]:
        """Its values in the question's own order, each by its place in the survey's."""
        as_listed = range(self.k)
        if self.kind in ("hashed", "fresh", "plane", "threshold") or self.sources[0].prior:
            return as_listed
        encoded = [value.encode() for value in self.values]
        if self.ordered:
            return as_listed if encoded <= encoded[::-1] else as_listed[::-1]
        return [*sorted(range(self.items), key=encoded.__getitem__), *range(self.items, self.k)]

    @cached_property
    def own_places(self) -> Sequence[int]:
        """The place of each value in the question's own order, by its place in the survey's.

        Looked up, because a search takes longer for later values.
        """
        if isinstance(self.order, range):
            return self.order  # as listed or reversed: the inverse is the same
        places = [0] * self.k
        for own, listed in enumerate(self.order):
            places[listed] = own
        return places

    @cached_property
    def id(self) -> str:
        """The same in every survey that asks the same about the same value of the app."""
        texts = ["question", self.kind, str(self.parameter), str(self.k), self.fakes or ""]
        texts += [" ".join(self.tables["traits"]), " ".join(self.tables["first"]), str(len(self.sources))]
        for source in self.sources:
            texts += [source.name, source.other or "", "" if source.grid is None else source.grid.written]
        return hashed(*texts, *(self.values[place] for place in self.order))

    def verify(self) -> None:
        """Every table, made here, must be the one that whoever made the terms has."""
        first, traits = [*self.first.tables], []
        if self.kind == "fresh":
            first = [Table([1.0] * self.size), *first]
        if self.fakes == "noisy":
            first.append(Table(self._fake_shares))
        if self.kind == "hashed":
            mapped = [[self.cell(value, trait) for value in range(self.k)] for trait in range(self.hashes)]
            traits = [Table([1.0] * self.hashes).digest(), digest(mapped)]
        if self.kind == "buckets":
            traits = [digest([range(self.k - self.size + 1, self.k + 1)], flat=True)]
        if self.kind == "threshold":
            traits = [digest([[self.parameter * (self.k - 1)]], flat=True)]
        second = [] if self.second is None else self.second.tables
        digests = traits, [each.digest() for each in first], [each.digest() for each in second]
        for part, made in zip(PARTS, digests):
            need(self.tables[part] == made, f"tables of {part}")

    @cached_property
    def _points(self) -> list[list[int]]:
        """What `hashed` multiplies a hash with, by value: rows of digits whose first digit other than 0 is 1."""
        rows = map(self._written, range(self.hashes))
        return [row for row in rows if next(filter(None, row), 0) == 1][: self.k]

    def _written(self, number: int) -> list[int]:
        """In digits, most significant first."""
        return [number // self.size**i % self.size for i in reversed(range(self._digits))]

    def _symbol(self, hash_: Sequence[int], digits: Sequence[int]) -> int:
        return int(sum(map(mul, hash_, digits)) % self.size)

    def trait(self, draws: Draws) -> Any:
        """What a device keeps for life: the hash of `hashed`, the values that `buckets` hold, a threshold."""
        if self.kind == "hashed":
            return Table([1.0] * self.hashes).one(draws)
        if self.kind == "threshold":
            return draws.longs(1)[0] * self.parameter * (self.k - 1) // WORD
        held: set[int] = set()
        for last, long in enumerate(draws.longs(self.size if self.kind == "buckets" else 0), self.k - self.size):
            pick = long * (last + 1) // WORD  # Floyd's algorithm: every set is equally likely
            held.add(last if pick in held else pick)
        return sorted(held)

    def cell(self, value: int, trait: Any) -> int:
        """What is memoised for a value; the last cell of buckets stands for all values that are not held."""
        if self.kind == "hashed":
            return self._symbol(self._written(trait), self._points[value])
        if self.kind == "buckets":
            held = {each: place for place, each in enumerate(trait)}
            return int(held.get(value, self.size))
        if self.kind == "threshold":
            return int(value > trait // self.parameter)
        return value

    def memoise(self, cell: int, own: bool, draws: Draws) -> int:
        """Round 1, with values in the question's own order. Not `own`: a fake stands in for the value."""
        fakes, hash_ = None if own else self.fakes, []
        if fakes == "bare":
            return int(self.first.tables[0].one(draws, 1))
        if fakes is not None:
            cell = Table(self._fake_shares).one(draws.fork(2)) if fakes == "noisy" else self.size
        if self.kind == "fresh":
            hash_ = Table([1.0] * self.size).sample(draws.fork(1), self._digits)
            cell = self._symbol(hash_, self._written(cell))
        memo = 0
        for digit in (*hash_, self.first.one(cell, draws)):
            memo = memo * self.size + digit
        return memo

    def to_survey(self, memo: int, trait: Any, order: Sequence[int]) -> tuple[int, Any]:
        """Memo and trait with values in the survey's order, in which round 2 is drawn."""
        if self.kind == "buckets":
            return memo, [order[place] for place in trait]
        if self.kind == "unary":
            return sum(1 << order[place] for place in _ones(memo)), trait
        return order[memo] if self.kind == "direct" else memo, trait

    def perturb(self, memo: int, draws: Draws) -> int:
        return memo if self.second is None else int(self.second.one(memo, draws))

    def finish(self, answer: int, trait: Any) -> bytes:
        """The bytes of an answer: those of all bits, or the fewest of 1, 2, 4 or 8 that hold every symbol."""
        if self.bits:
            return sum(1 << value for value in self.supports(answer, trait)).to_bytes(-(-self.k // 8), "little")
        said = trait * self.size + answer if self.kind == "hashed" else answer
        if self.kind == "threshold":  # it shows the slot of the threshold, and not the threshold
            said = trait // (self.k - 1) + (1 - answer) * self.parameter
        return said.to_bytes(next(size for size in (1, 2, 4, 8) if self.hashes * self.size <= 1 << 8 * size), "little")

    def supports(self, answer: int, trait: Any) -> list[int]:
        """The values that an answer speaks for."""
        values = range(self.k)
        if self.kind in ("hashed", "threshold"):
            return [value for value in values if self.cell(value, trait) == answer]
        if self.kind == "fresh":
            hash_, symbol = self._written(answer // self.size), answer % self.size
            return [value for value in values if self._symbol(hash_, self._written(value)) == symbol]
        said = _ones(answer) if self.bits else [answer]
        return [trait[place] for place in said] if self.kind == "buckets" else said


def _ones(bits: int) -> list[int]:
    return [i for i, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]


def _encoding(given: Any, k: int, grid: Grid | None) -> tuple[str, int, int]:
    """Its kind, its parameter, and how many digits a hash has."""
    own = {"direct": "", "unary": "", "hashed": "g", "fresh": "g", "buckets": "d", "threshold": "slots"}
    own["plane"] = "columns rows"
    kind = one_of(given["kind"], own, "encoding")
    need(given.keys() == {"kind", *own[kind].split()}, "encoding")
    if kind == "plane":
        need(grid and (given["columns"], given["rows"]) == (grid.columns, grid.rows), "encoding")
    if kind in ("buckets", "threshold"):
        return kind, whole(given[own[kind]], 1, k - (kind == "threshold"), kind), 0
    if own[kind] != "g":
        return kind, 0, 0
    g = one_of(given["g"], FRESH_PRIMES, "hash")
    if kind == "hashed":
        digits = next(count for count in range(8, 0, -1) if g**count <= 256)
        need(g <= 13 and k <= (g**digits - 1) // (g - 1), "hash")
    else:
        digits = next(count for count in range(1, 64) if g**count >= k)
        need(g**digits <= MOST_HASHES, "hash")
    return kind, g, digits
