"""Encodings: how a value becomes a symbol or bits, and which values an answer supports.

An encoding does not depend on budgets. It turns a value into a *cell* (what is memoised: the value itself, its hash, or
its bucket), cells into a column of memos with the noise of round 1, adds the noise of round 2, and counts what answers
support.

    Direct    the value is a symbol                    GRR, truncated geometric
    Unary     the value is a one-hot vector of bits    SUE, OUE

Encodings with lifelong traits are in `lifelong`, the one with a new hash in every report is in `fresh`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np

from protocols.arrays.aliases import Column, Counts, Floats, Mask, Places, Traits, Values, Whole, Words
from protocols.arrays.columns import Layout, PackedBits, Symbols, count_bits, count_ones, count_symbols
from protocols.mechanisms.channels import Among, Together
from protocols.mechanisms.rounds import Flip, MatrixRound, Round, width_law
from protocols.randomness.keystream import Draws
from protocols.randomness.sampling import Table, eight_bits

Tables = tuple[Words, ...]  # the integers of samplers, which a survey's fingerprint covers
FakeKind = Literal["zero", "bare", "noisy"]
"""What a fake is: noise on no value, a drawn value without the noise of round 1, or a drawn value perturbed like a true
one."""


class Encoding(ABC):
    """What an encoding does. `traits` are what a device keeps for life (its hash, its buckets), or None.

    What is not abstract holds for encodings that have no lifelong traits, and whose answers are not told apart by how
    many values they support.
    """

    kind: str
    """Its name, as devices read it, and those of its own parameters."""
    parameters: tuple[str, ...] = ()
    k: int
    several: int = 1
    """Of how many elements a device draws the one that it answers about: the size to which its set is padded."""
    exclusive = False
    lifelong = False
    """Whether devices have traits."""

    @property
    def trait_count(self) -> int:
        """How many values the trait has that every answer shows; 1: answers show none."""
        return 1

    @property
    def sent(self) -> Whole:
        """The cell of each value, in a row for each trait; not of buckets and thresholds, whose traits are too many."""
        assert not self.lifelong, "there are too many traits to go through"
        return np.arange(self.k)[None, :]

    @property
    def most(self) -> int:
        """How many values an answer of a device can support."""
        return self.k

    @property
    def states(self) -> int:
        """How many memos a device can ever have."""
        return min(self.inner.k, self.k)

    @property
    def detail(self) -> str:
        """Its own parameter for people, such as "g = 3"; empty if it has none."""
        own = {"L": self.several} if self.several > 1 else {name: getattr(self, name) for name in self.parameters}
        return ", ".join(f"{name} = {value}" for name, value in own.items())

    @property
    def terms(self) -> dict[str, int | str]:
        """Its kind and its own parameters, as devices read them."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.parameters}}

    @property
    @abstractmethod
    def inner(self) -> "Plain":
        """By which cells are memoised and perturbed: most encodings are their own."""

    @property
    def memo(self) -> Layout:
        return self.inner.answer

    @property
    def answer(self) -> Layout:
        return Symbols(self.k)

    def seen(self, flip: Flip) -> Flip:
        """The support channel of an answer whose column went through `flip`."""
        return flip if self.several == 1 else Flip(flip.q + flip.gain / self.several, flip.q)

    def together(self, flip: Flip) -> Together | None:
        """How often an answer supports two values at once, where lifelong traits make them dependent; else None."""
        return None

    def among(self, flip: Flip) -> Among | None:
        """The sum of `together` over a group, where that is quicker than one by one; else None."""
        return None

    @abstractmethod
    def best_likelihoods(self, noise: Round) -> float:
        """The sum over all answers of the largest likelihood that any value gives them, after `noise`."""

    def trait_tables(self) -> Tables:
        """The integers that `traits` draws with."""
        return ()

    def traits(self, draws: Draws) -> Traits:
        return None

    def cells(self, values: Values, traits: Traits) -> Values:
        return values

    def finish(self, column: Column, traits: Traits) -> Column:
        return column

    def reordered(self, memo: Column, order: Whole) -> Column:
        """Memos whose value i is value order[i] of the survey, as memos of the survey's values."""
        return memo

    def reordered_traits(self, traits: Traits, order: Whole) -> Traits:
        return traits

    def count(self, answers: Column, groups: Whole, size: int) -> Counts:
        """How many answers of each group support each value."""
        counted = count_bits if isinstance(self.answer, PackedBits) else count_symbols
        return counted(answers, groups, size, self.k)

    @property
    def widths(self) -> int:
        """How many cells `count_widths` has: 0 where every answer supports one value, or nearly all as many."""
        return self.k + 1

    def count_widths(self, answers: Column) -> Counts:
        """How many answers support 0, 1 .. k values."""
        return count_ones(answers, self.k)

    def width_laws(self, flip: Flip, own: float) -> Floats:
        """The chances that an honest answer supports 0, 1 .. k values, in rows: the law of a survey is a mixture.

        One row where the law does not depend on the value. With chance `own`, the answer is about a value at all.
        """
        return width_law(self.k, self.most, own * (self.most / self.k), flip)[None, :]

    def answers_by_value(self, noise: Round) -> Floats | None:
        """If every answer shows a trait of its own: the chance of each answer, by the value; else None."""
        return None

    def fresh_pairs(self, noise: Round) -> tuple[Floats, Floats] | None:
        """If every answer shows a trait of its own: the chances of two answers of one device, and of two devices.

        `[later, earlier]` of all pairs, or of those that are alike together. None where answers share a memo.
        """
        return None

    def forged(self, targets: Places) -> tuple[float, float]:
        """How many of some values an answer supports: at most, and on average over all answers that are possible."""
        return float(min(len(targets), self.most)), len(targets) / (self.k if self.exclusive else 2)


class Plain(Encoding):
    """One without traits."""

    @property
    def inner(self) -> "Plain":
        return self

    @abstractmethod
    def memo_tables(self, noise: Round, bare: Floats | None = None) -> Tables:
        """The integers that `memoise` draws with, or where bare fakes have this distribution, `Direct.hide`."""

    def report_tables(self, noise: Round) -> Tables:
        """The integers that `perturb` draws with."""
        return self.memo_tables(noise)

    @abstractmethod
    def memoise(self, cells: Values, noise: Round, draws: Draws) -> Column:
        """Round 1: cells encoded, with noise."""

    def perturb(self, memo: Column, noise: Round, draws: Draws) -> Column:
        """Round 2: of symbols like round 1."""
        return self.memoise(memo, noise, draws)


class ByHash(Encoding):
    """A value is hashed to one of g symbols by one of a public family of hashes; an answer is `hash * g + symbol`.

    Any two values are sent together by exactly 1/g of the family, so a wrong value is supported with probability 1/g.
    """

    g: int
    parameters = ("g",)

    @property
    @abstractmethod
    def digits(self) -> int:
        """Of base g, in which hashes are written."""

    @property
    def family(self) -> int:
        return int(self.g**self.digits)

    @property
    @abstractmethod
    def reached(self) -> float:
        """To how many of the g symbols a value is hashed, on average over the family."""

    @property
    def answer(self) -> Symbols:
        return Symbols(self.family * self.g)

    def seen(self, flip: Flip) -> Flip:
        return Flip(flip.p, 1 / self.g)

    def best_likelihoods(self, noise: Round) -> float:
        """A symbol that no value is hashed to has probability q under every value. The observer knows the hash."""
        flip = bit_flip(noise)
        return float(self.reached * flip.p + (self.g - self.reached) * flip.q)

    def hashed(self, hashes: Whole, values: Values) -> Whole:
        """Where hashes send values; arrays of any shapes that fit one another.

        >>> from protocols.mechanisms.fresh import FreshHash
        >>> FreshHash(9, 3).hashed(np.array([4]), np.array([0, 5, 8])).tolist()
        [0, 0, 1]
        """
        sums: Whole = np.zeros(np.broadcast_shapes(hashes.shape, values.shape), dtype=np.int64)
        for _ in range(self.digits):
            (hashes, x), (values, v) = np.divmod(hashes, self.g), np.divmod(values, self.g)
            sums += x.astype(np.int64) * v
        return np.asarray(sums % self.g)


@dataclass(frozen=True)
class Direct(Plain):
    """The value is the symbol."""

    k: int
    several: int = field(default=1, kw_only=True)
    kind = "direct"
    exclusive = True
    most = 1
    widths = 0

    def best_likelihoods(self, noise: Round) -> float:
        if isinstance(noise, MatrixRound):
            return noise.best_guesses
        return self.k * noise.p

    def memo_tables(self, noise: Round, bare: Floats | None = None) -> Tables:
        if isinstance(noise, MatrixRound):
            return (noise.table,)
        return (_shifts(self.k, noise.p, noise.q, None if bare is None else tuple(bare.tolist())).integers,)

    def memoise(self, cells: Values, noise: Round, draws: Draws) -> Column:
        if isinstance(noise, MatrixRound):
            return noise.sample(cells, draws).astype(self.memo.dtype, copy=False)
        # Noise is a shift: by 0 with p, by each other amount with q. So one table serves all values.
        return self._shifted(cells, _shifts(self.k, noise.p, noise.q).sample(draws))

    def _shifted(self, cells: Values, shifts: Column) -> Column:
        return np.asarray((cells.astype(np.int64) + shifts) % self.k, dtype=shifts.dtype)

    def hide(self, cells: Values, own: Mask, bare: Floats, noise: Flip, draws: Draws) -> Column:
        """Round 1 of the device's own attribute; elsewhere a bare fake, which is a shift of 0 by the fake value."""
        exempt = np.zeros(len(own), dtype=np.int64), ~own
        table = _shifts(self.k, noise.p, noise.q, tuple(bare.tolist()))
        return self._shifted(cells * own, table.sample(draws, exempt=exempt))

    def reordered(self, memo: Column, order: Whole) -> Column:
        return order[memo].astype(memo.dtype)


@dataclass(frozen=True)
class Unary(Plain):
    """The value is the one bit set among k."""

    k: int
    several: int = field(default=1, kw_only=True)
    kind = "unary"

    @property
    def answer(self) -> PackedBits:
        return PackedBits(self.k)

    def best_likelihoods(self, noise: Round) -> float:
        """An answer with any bit set is likeliest under a value whose bit is; one without, under every value alike."""
        flip = bit_flip(noise)
        silent = (1 - flip.q) ** self.k  # the chance that no bit is set if none is set in the truth
        return flip.p / flip.q * (1 - silent) + (1 - flip.p) / (1 - flip.q) * silent

    def memo_tables(self, noise: Round, bare: Floats | None = None) -> Tables:
        flip = bit_flip(noise)
        return (eight_bits(flip.q, flip.p).integers,)

    def report_tables(self, noise: Round) -> Tables:
        flip = bit_flip(noise)
        ones = () if flip.p + flip.q == 1 else (eight_bits(flip.p).integers,)
        return (eight_bits(flip.q).integers, *ones)

    def memoise(self, cells: Values, noise: Round, draws: Draws) -> Column:
        """Every bit is 1 with probability q, except the cell's own, which is 1 with p; the cell k has none."""
        flip = bit_flip(noise)
        exempt = cells, cells < self.k
        return eight_bits(flip.q, flip.p).sample(draws, self.answer.bytes, exempt, self.answer.spare)

    def perturb(self, memo: Column, noise: Round, draws: Draws) -> Column:
        flip = bit_flip(noise)
        flips = eight_bits(flip.q).sample(draws, self.answer.bytes, spare=self.answer.spare)
        if flip.p + flip.q != 1:  # ones are flipped with 1 - p, not with q
            flips ^= memo & (flips ^ ~eight_bits(flip.p).sample(draws.fork(1), self.answer.bytes))
        return memo ^ flips

    def reordered(self, memo: Column, order: Whole) -> Column:
        # `take` keeps each row together in memory; an index turns the table, and packing then takes four times as long
        return self.answer.pack(self.answer.unpack(memo).take(np.argsort(order), axis=1))


def bit_flip(noise: Round) -> Flip:
    """The round of noise of an encoding whose places are all flipped alike."""
    assert isinstance(noise, Flip), "this encoding takes flips, not a matrix"
    return noise


@lru_cache(maxsize=256)
def _shifts(k: int, p: float, q: float, fakes: tuple[float, ...] | None = None) -> Table:
    truth = [p] + [q] * (k - 1)
    return Table(truth) if fakes is None else Table(truth, fakes)


@lru_cache(maxsize=256)
def table_of(probabilities: tuple[float, ...]) -> Table:
    return Table(probabilities)
