"""The encoding of a number by one bit: whether it is above a threshold that the device keeps for life (PROTOCOLS 5).

The range is cut into slots of the same length. A device draws a slot, which its answers show, and a threshold in it,
which they do not. Together the thresholds of all devices lie evenly over the range. So the share of devices that are
above theirs is the mean of their numbers, in units of the range, and by slot it is how many numbers are larger.
"""

from dataclasses import dataclass

import numpy as np

from protocols.arrays.aliases import Column, Floats, Traits, Values, Whole
from protocols.arrays.columns import Symbols
from protocols.mechanisms.encodings import Direct, Encoding, Tables, bit_flip
from protocols.mechanisms.rounds import Flip, Round
from protocols.randomness.keystream import Draws
from protocols.randomness.sampling import below

SLOTS = 12
"""By default: quantiles are found to a twelfth of the range, and slots divide the crowd by 3.6 bits."""


def slots_of(numbers: int, parameter: int | None) -> int:
    """Into how many slots a range of so many numbers is cut."""
    return min(SLOTS, numbers - 1) if parameter is None else parameter


def above(numbers: int, slots: int) -> Floats:
    """The chance that a number is above a threshold in a slot: `[slot, number]`."""
    return np.clip(np.arange(numbers) / (numbers - 1) * slots - np.arange(slots)[:, None], 0, 1)


@dataclass(frozen=True)
class Threshold(Encoding):
    """A number is the set of the slots that it is above, as a padded set has it: k is twice the slots.

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
    states = 2

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

    @property
    def answer(self) -> Symbols:
        return Symbols(self.k)

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

    @property
    def sent(self) -> Whole:
        raise TypeError("answers do not show the threshold")
