"""What a survey asks: attributes, whose values an app gives, and questions about them.

There is one memo per question, however many surveys ask it (docs/device-protocol.md, "Questions" and "Values").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from math import floor, isfinite, nan
from numbers import Real
from typing import Any

from hearsay_device.checks import keys, listed, need, not_terms, number, one_of, sum_to_1, text, whole
from hearsay_device.draws import hashed
from hearsay_device.encodings import Bits, Encoding, Flip, Matrix, SecondBits, hash_digits
from hearsay_device.places import Grid, Move

ATTRIBUTE = "geo geo_inf grid mechanism name other parameter prior range share values"
PARTS = ("traits", "first", "second")
MAX_VALUES = 1 << 16
MOST_VALUES, MOST_HASHES = 1_000_000, 1 << 23  # of answers with fresh hashes
HASH_PRIMES = (2, 3, 5, 7, 11, 13)
FRESH_PRIMES = (*HASH_PRIMES, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
MAX_ORDERED_TWICE = 256  # values, with two rounds


class Attribute:
    """What the app gives a value of.

    `other` stands for a value that is not listed; `span` are the first numbers of the values of a range, and its end;
    `rates` are what one cell side may cost, as declared, in one report and for ever.
    """

    def __init__(self, given: Any, solution: str) -> None:
        keys(given, ATTRIBUTE, "attribute")
        self.name = text(given["name"], "[a-z][a-z0-9_]{0,62}", "name")
        self.span = _span(given["range"]) if "range" in given else None
        self.grid = Grid(given["grid"]) if "grid" in given else None
        self.values = _listed(given, self.span, self.grid)
        self.places = {value: place for place, value in enumerate(self.values)}
        need(len(self.places) == len(self.values) >= 2, "values")
        self.other = given.get("other")
        need("other" not in given or self.other in self.places, "other")
        self.rates = [_rate(given[key], self.grid) if key in given else None for key in ("geo", "geo_inf")]
        self.placed = self.rates != [None, None]
        need(not self.placed or solution == "smp", "geo")
        self.prior = None
        need(("prior" in given) == (solution == "rs+rfd"), "prior")
        if "prior" in given:
            need(given["prior"].keys() == self.places.keys(), "prior")
            self.prior = sum_to_1([given["prior"][value] for value in self.values], "prior")

    def place(self, given: Any, last: int | None) -> int | None:
        """The place of a value in the survey's list; None if it is not listed. Never an error.

        `last` is the cell of a grid that the device was in.
        """
        if self.grid is not None and isinstance(given, Mapping):
            return self.grid.cell_of(given, last)
        if isinstance(given, bool):
            given = "true" if given else "false"
        number = float(given) if isinstance(given, Real) else nan
        if isfinite(number) and number == floor(number) and abs(number) <= 1 << 53:
            given = str(int(number))
        if isinstance(given, str) and given in self.places:
            return self.places[given]
        if isinstance(given, str) and re.fullmatch("-?[0-9]{1,15}", given):
            number = float(given)
        if self.span is None or number != number:
            return None
        return (floor(min(max(number, self.span.start), self.span.stop - 1)) - self.span.start) // self.span.step


class Question:
    """One attribute, or a cross of two (`sources`), as it is asked.

    `parameter` is g of hashes, d of buckets, otherwise 0; `size` how many symbols or bits a memo has; `states` how many
    memos a device can ever have; `share` the chance that a device draws this question, where it draws one; `fakes` what
    a fake answer is: `zero` (no value), `bare` (a drawn value), `noisy` (a drawn value with round 1).
    """

    def __init__(self, given: Any, sources: Sequence[Attribute], solution: str, share: float) -> None:
        keys(given, "encoding fakes first mechanism second tables", "question")
        self.sources, self.share = sources, share
        self.name = "*".join(source.name for source in sources)
        self.values = ["*".join(each) for each in product(*(source.values for source in sources))]
        self.k = len(self.values)
        need(len(set(self.values)) == self.k, "crosses")
        self.kind, self.parameter = _encoding(given["encoding"], self.k, sources[0].grid)
        need((self.kind == "plane") == sources[0].placed, "geo")
        need(self.kind == "fresh" or self.k <= MAX_VALUES, "values")
        self.bits = self.kind in ("unary", "buckets")
        self.size = self.parameter or self.k
        self.states = min(self.k, self.size + (self.kind == "buckets"))
        self.ordered = self.kind == "direct" and "ends" in given["first"]
        self.fakes = None
        if solution.startswith("rs"):
            kinds = {"direct": ("bare", "noisy"), "unary": ("zero", "noisy") if solution == "rs+fd" else ("noisy",)}
            need(not self.ordered, "fakes")
            self.fakes = one_of(given["fakes"], kinds.get(self.kind, ()), "fakes")
        need(self.fakes == given["fakes"], "fakes")
        self.fake_shares = sources[0].prior or (1 / self.k,) * self.k
        bare = self.fake_shares if self.fakes == "bare" else ()
        self.first = self._round(given["first"], Bits, bare)
        self.second = None if given["second"] is None else self._round(given["second"], SecondBits)
        need(not self.ordered or self.second is None or self.k <= MAX_ORDERED_TWICE, "values")
        keys(given["tables"], " ".join(PARTS), "tables")
        self.tables = {part: given["tables"][part] for part in PARTS}
        self.encoding = Encoding(self)

    def _round(self, given: Any, bits: type[Bits], fakes: Sequence[float] = ()) -> Any:
        if self.kind == "plane":
            return Move(given, self.sources[0].grid)
        return Matrix(given, self.k) if self.ordered else (bits if self.bits else Flip)(given, self.size, fakes)

    @cached_property
    def order(self) -> Sequence[int]:
        """Its values in the question's own order, each by its place in the survey's.

        By their UTF-8 bytes where the mechanism knows no order; as listed where a hash, a prior or a grid does; of
        ordered values as listed or reversed, whichever is smaller.
        """
        as_listed = range(self.k)
        if self.kind in ("hashed", "fresh", "plane") or self.sources[0].prior:
            return as_listed
        encoded = [value.encode() for value in self.values]
        if self.ordered:
            return as_listed if encoded <= encoded[::-1] else as_listed[::-1]
        return sorted(as_listed, key=encoded.__getitem__)

    @cached_property
    def id(self) -> str:
        """The same in every survey that asks the same about the same value of the app."""
        texts = ["question", self.kind, str(self.parameter), str(self.k), self.fakes or ""]
        texts += [" ".join(self.tables["traits"]), " ".join(self.tables["first"]), str(len(self.sources))]
        for source in self.sources:
            texts += [source.name, source.other or "", "" if source.grid is None else source.grid.written]
        return hashed(*texts, *(self.values[place] for place in self.order))


def _listed(given: Any, span: range | None, grid: Grid | None) -> list[str]:
    """The values; those of a long range are its numbers, or the first and the last number of each step."""
    if grid is not None:
        need("values" not in given and span is None, "values")
        return [f"x{column}y{row}" for row in range(grid.rows) for column in range(grid.columns)]
    if span is None or "values" in given:
        values = [text(value) for value in listed(given["values"], MAX_VALUES, "values")]
        need(span is None or len(values) == len(span), "range")
        return values
    need(MAX_VALUES < len(span) <= MOST_VALUES, "range")
    return [str(each) if span.step == 1 else f"{each}-{min(each + span.step, span.stop) - 1}" for each in span]


def _span(given: Any) -> range:
    keys(given, "first last step", "range")
    first = whole(given.get("first", 0), -(1 << 53), 1 << 53, "range")
    last, step = whole(given["last"], first, 1 << 53, "range"), whole(given.get("step", 1), 1, 1 << 53, "range")
    return range(first, last + 1, step)


def _rate(given: Any, grid: Grid | None) -> float:
    keys(given, "level radius", "geo")
    need(all(number(given[key]) and given[key] > 0 for key in ("level", "radius")), "geo")
    return float(given["level"] * grid.cell / given["radius"]) if grid else not_terms("geo")


def _encoding(given: Any, k: int, grid: Grid | None) -> tuple[str, int]:
    """Its kind and its parameter."""
    own = {"direct": "", "unary": "", "hashed": "g", "fresh": "g", "buckets": "d", "plane": "columns rows"}
    kind = one_of(given["kind"], own, "encoding")
    need(given.keys() == {"kind", *own[kind].split()}, "encoding")
    if kind == "plane":
        need(grid and (given["columns"], given["rows"]) == (grid.columns, grid.rows), "encoding")
    if kind == "buckets":
        return kind, whole(given["d"], 1, k, "buckets")
    if own[kind] != "g":
        return kind, 0
    g = one_of(given["g"], HASH_PRIMES if kind == "hashed" else FRESH_PRIMES, "hash")
    hashes = g ** hash_digits(kind, k, g)
    need(k <= (hashes - 1) // (g - 1) if kind == "hashed" else k <= MOST_VALUES and hashes <= MOST_HASHES, "hash")
    return kind, g
