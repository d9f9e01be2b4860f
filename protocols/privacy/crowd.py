"""Whether a crowd of devices hides which reports come from one of them (PROTOCOLS 9).

Two reports of a device are alike in two ways: their answers come from one memo (`linking`), and both show what the
device keeps for life (its sampled attribute under smp, its hash, its buckets, its place under one_in). Both are
measured in bits. A crowd of n devices hides a device while the sum is at least 10 bits below log2(n), and where the sum
is below 1 bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log2, prod

from protocols.privacy.linking import first_guess, pair_information
from protocols.question import Question

SPARE_BITS = 10  # by which log2 of the crowd must exceed what links
HARMLESS_BITS = 1.0


@dataclass(frozen=True)
class Evidence:
    """What two reports of one device have in common, for attributes that are answered in the same report.

    `traits` is one over the chance that another device shows the same lifelong traits: how many values they have, if
    all are alike. Which question a device draws is one of them.
    """

    questions: tuple[Question, ...]
    traits: Fraction
    memoised: bool

    @property
    def answer_bits(self) -> float:
        return sum(pair_information(question, self.memoised) for question in self.questions)

    @property
    def trait_bits(self) -> float:
        return log2(self.traits)

    @property
    def bits(self) -> float:
        return self.answer_bits + self.trait_bits

    def links(self, devices: int) -> bool:
        """Whether a device can be recognised among this number of devices."""
        return self.bits > hidden_bits(devices)

    def first_guess(self, devices: int) -> float:
        """The chance that the best guess of which earlier report is the same device's is right.

        Only devices with the same traits are candidates.
        """
        return first_guess(self.questions, self.alike(devices), self.memoised)

    def alike(self, devices: int) -> int:
        """How many devices of a crowd of this size have the same traits."""
        return max(1, devices // self.traits)


def hidden_bits(devices: int) -> float:
    """How many bits a crowd of this number of devices hides.

    >>> [round(hidden_bits(devices), 1) for devices in (1_000, 10_000, 1_000_000)]
    [1.0, 3.3, 9.9]
    """
    return max(HARMLESS_BITS, log2(devices) - SPARE_BITS)


def evidence(questions: Sequence[Question], discloses: bool, memoised: bool, places: int = 1) -> list[Evidence]:
    """What each answer shows: under smp one attribute and which one it is, otherwise all attributes.

    Its period shows at which of so many `places` the device answers (one_in).
    """
    if discloses:
        return [Evidence((q,), trait_values(q) * places / q.drawn, memoised) for q in questions]
    return [Evidence(tuple(questions), Fraction(prod(trait_values(q) for q in questions) * places), memoised)]


def trait_values(question: Question) -> int:
    """How many values the lifelong trait has that every answer to this question shows; 1: it shows none."""
    return question.mechanism.encoding.trait_count
