"""Encodings with lifelong traits, which reports show (PROTOCOLS 5).

Hashed      the value is hashed to g symbols, one hash for life          LOLOHA
Buckets     d of k one-hot bits, the same d for life                     dBitFlipPM
Threshold   whether a number is above a threshold, the same for life     means and quantiles
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from protocols.arrays.aliases import Column, Counts, Floats, Places, Traits, Values, Whole
from protocols.arrays.columns import PackedBits, count_symbols
from protocols.mechanisms.channels import Together, independent
from protocols.mechanisms.encodings import ByHash, Direct, Encoding, Tables, Unary, bit_flip
from protocols.mechanisms.rounds import Flip, Round
from protocols.randomness.keystream import Draws
from protocols.randomness.sampling import below, uniform

SLOTS = 12
"""By default: quantiles are found to a twelfth of the range, and slots divide the crowd by 3.6 bits."""


def slots_of(numbers: int, parameter: int | None) -> int:
    """Into how many slots a range of so many numbers is cut."""
    return min(SLOTS, numbers - 1) if parameter is None else parameter


def above(numbers: int, slots: int) -> Floats:
    """The chance that a number is above a threshold in a slot: `[slot, number]`."""
    return np.clip(np.arange(numbers) / (numbers - 1) * slots - np.arange(slots)[:, None], 0, 1)


@dataclass(frozen=True)
class Hashed(ByHash):
    """A value is hashed to one of g symbols by a hash the device keeps for life (PROTOCOLS 5, LOLOHA).

    The public family is an orthogonal array: hash number x, read as digits over the prime field of g, maps value i to
    the inner product of x with the i-th projective point. There are no more than 256 hashes.
    """

    k: int
    g: int
    kind = "hashed"
    lifelong = True

    @property
    def inner(self) -> Direct:
        return Direct(self.g)

    @property
    def trait_count(self) -> int:
        return self.family

    @cached_property
    def most(self) -> int:
        return int(self.width_of.max())

    @property
    def digits(self) -> int:
        """The family's dimension: the largest with g^digits <= 256."""
        return next(m for m in range(8, 0, -1) if self.g**m <= 256)

    @cached_property
    def sent(self) -> Whole:
        """sent[x, i]: where hash x sends value i."""
        leads = [self.g**place for place in range(self.digits)]  # of points the first digit other than 0 is 1
        points = np.concatenate([np.arange(lead, 2 * lead) for lead in leads])[: self.k]
        return self.hashed(np.arange(self.family)[:, None], points[None, :])

    def together(self, flip: Flip) -> Together:
        """Two values are supported together when a hash sends both to the answer: averaged over the family.

        If no value is encoded (shares that sum to 0), every symbol is equally likely.
        """

        def joint(values: Floats, places: Places) -> Floats:
            sent = self.sent[:, :, None] == np.arange(self.g)  # [hash, value, symbol]
            shared = values.sum()
            chances = np.einsum("v,xvy->xy", values, sent) * flip.gain + shared * flip.q + (1 - shared) / self.g
            some = sent[:, places]
            return np.asarray(np.einsum("xiy,xjy,xy->ij", some, some, chances, optimize=True) / self.family)

        return joint

    @property
    def reached(self) -> float:
        return float(np.mean([len(np.unique(row)) for row in self.sent]))

    def trait_tables(self) -> Tables:
        return uniform(self.family).integers, self.sent.astype(np.uint64)

    def traits(self, draws: Draws) -> Traits:
        return uniform(self.family).sample(draws).astype(np.int64)

    def cells(self, values: Values, traits: Traits) -> Values:
        return np.asarray(self.sent[traits, values])

    def finish(self, column: Column, traits: Traits) -> Column:
        return (np.asarray(traits) * self.g + column).astype(self.answer.dtype)

    def count(self, answers: Column, groups: Whole, size: int) -> Counts:
        counts = count_symbols(answers, groups, size, self.family * self.g).reshape(size, self.family, self.g)
        by_value = np.take_along_axis(counts, np.broadcast_to(self.sent, (size, *self.sent.shape)), axis=2)
        return np.asarray(by_value.sum(axis=1))

    @cached_property
    def width_of(self) -> Whole:
        """How many values each answer supports: the values that its hash sends to its symbol."""
        return np.asarray((self.sent[:, :, None] == np.arange(self.g)).sum(axis=1).ravel())

    def count_widths(self, answers: Column) -> Counts:
        symbols = count_symbols(answers, np.zeros(len(answers), dtype=np.uint8), 1, self.family * self.g)[0]
        counts = np.zeros(self.widths, dtype=np.int64)
        np.add.at(counts, self.width_of, symbols)
        return counts

    def width_laws(self, flip: Flip, own: float) -> Floats:
        sent = self.sent[:, :, None] == np.arange(self.g)  # [hash, value, symbol]
        chances = np.where(sent, flip.p, flip.q) / self.family
        laws = [np.bincount(self.width_of, chances[:, value].ravel(), self.k + 1) for value in range(self.k)]
        return np.unique(np.round(laws, 15), axis=0)

    def forged(self, targets: Places) -> tuple[float, float]:
        sent = self.sent[:, targets]
        best = max((sent == symbol).sum(axis=1).max() for symbol in range(self.g))
        return float(best), len(targets) / self.g


@dataclass(frozen=True)
class Buckets(Encoding):
    """A device answers for d of the k values, the same d for life (PROTOCOLS 5, dBitFlipPM).

    What is memoised is which of its d values it has, or none of them: d + 1 cells. The answer is a vector of k bits in
    which the values it does not hold are 0, so an answer supports i with d/k times the bit's own probability.
    """

    k: int
    d: int
    kind = "buckets"
    lifelong = True
    parameters = ("d",)

    @property
    def inner(self) -> Unary:
        return Unary(self.d)

    @property
    def trait_count(self) -> int:
        return comb(self.k, self.d)

    @property
    def most(self) -> int:
        return self.d

    @property
    def states(self) -> int:
        return min(self.d + 1, self.k)

    @property
    def answer(self) -> PackedBits:
        return PackedBits(self.k)

    def seen(self, flip: Flip) -> Flip:
        held = self.d / self.k
        return Flip(held * flip.p, held * flip.q)

    def together(self, flip: Flip) -> Together:
        """Both values must be among the d, drawn without replacement; given that, the bits are independent."""
        both_held = self.d * (self.d - 1) / (self.k * (self.k - 1))
        return lambda values, places: both_held * independent(flip, values[places])

    def best_likelihoods(self, noise: Round) -> float:
        """As for all bits, but an answer without a bit is likeliest under the values that are not held, if any."""
        if self.d == self.k:
            return Unary(self.d).best_likelihoods(noise)
        flip = bit_flip(noise)
        silent = (1 - flip.q) ** self.d
        return flip.p / flip.q * (1 - silent) + silent

    def trait_tables(self) -> Tables:
        return (np.arange(self.k - self.d + 1, self.k + 1, dtype=np.uint64),)  # below each of these, one value is drawn

    def traits(self, draws: Draws) -> Traits:
        """The d values each device holds, ascending; every set is equally likely (Floyd's algorithm)."""
        words = draws.blocks(-(-self.d // 2)).view("<u8")
        held = np.empty((len(draws), self.d), dtype=np.int64)
        for place, last in enumerate(range(self.k - self.d, self.k)):
            pick = below(last + 1, words[:, place])
            taken = (held[:, :place] == pick[:, None]).any(axis=1)
            held[:, place] = np.where(taken, last, pick)
        return np.sort(held, axis=1)

    def cells(self, values: Values, traits: Traits) -> Values:
        held = np.asarray(traits) == values[:, None]
        return np.where(held.any(axis=1), held.argmax(axis=1), self.d)

    def reordered_traits(self, traits: Traits, order: Whole) -> Traits:
        return order[traits]

    def finish(self, column: Column, traits: Traits) -> Column:
        bits = np.zeros((len(column), self.k), dtype=np.uint8)
        np.put_along_axis(bits, np.asarray(traits), self.inner.answer.unpack(column), axis=1)
        return self.answer.pack(bits)

    def forged(self, targets: Places) -> tuple[float, float]:
        return float(min(len(targets), self.d)), len(targets) / 2 * self.d / self.k


@dataclass(frozen=True)
class Threshold(Encoding):
    """One bit about a number: whether it is above a threshold that the device keeps for life (PROTOCOLS 5).

    The range is cut into slots of the same length. A device draws a slot, which its answers show, and a threshold in
    it, which they do not. Together the thresholds of all devices lie evenly over the range. So the share of devices
    that are above theirs is the mean of their numbers, in units of the range, and by slot it is how many numbers are
    larger.

    A number is the set of the slots that it is above, as a padded set has it: k is twice the slots.

    Element i says that the number is above slot i, element i + k/2 that it is not. A device answers about one slot.
    A trait is a place among `numbers - 1` places in each slot; every `slots` of these places are between two numbers.

    >>> Threshold(k=4, numbers=4, several=2).cells(np.array([0, 1, 2, 3]), np.full(4, 3)).tolist()
    [0, 0, 1, 1]
    """

    k: int
    numbers: int
    several: int
    kind = "threshold"
    lifelong = True
    exclusive = True
    most = 1
    widths = 0

    @property
    def inner(self) -> Direct:
        return Direct(2)

    @property
    def trait_count(self) -> int:
        return self.several

    @property
    def detail(self) -> str:
        return f"J = {self.several}"

    @property
    def terms(self) -> dict[str, int | str]:
        return {"kind": self.kind, "slots": self.several}

    def seen(self, flip: Flip) -> Flip:
        return Flip(flip.p / self.several, flip.q / self.several)

    def best_likelihoods(self, noise: Round) -> float:
        """In every slot the largest number is the likeliest after one answer, and the smallest after the other."""
        return 2 * bit_flip(noise).p

    def trait_tables(self) -> Tables:
        return (np.array([self.several * (self.numbers - 1)], dtype=np.uint64),)  # below it, a place is drawn

    def traits(self, draws: Draws) -> Traits:
        return below(self.several * (self.numbers - 1), draws.blocks(1).view("<u8")[:, 0])

    def cells(self, values: Values, traits: Traits) -> Values:
        return (values > np.asarray(traits) // self.several).astype(np.int64)

    def finish(self, column: Column, traits: Traits) -> Column:
        slot = np.asarray(traits) // (self.numbers - 1)
        return np.asarray(slot + (1 - column.astype(np.int64)) * self.several, dtype=self.answer.dtype)
