"""One attribute as a survey asks it: a mechanism, and how often its answer is about the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.mechanisms.channels import Channel
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.record import MechanismRecord
from protocols.mechanisms.rounds import Flip
from protocols.randomness.sampling import digest
from protocols.survey.attribute import Attribute


@dataclass(frozen=True)
class Question:
    """One attribute as it is asked."""

    attribute: Attribute
    mechanism: Mechanism
    record: MechanismRecord  # the mechanism as surveys name it, such as "oue-z"
    budget: Budget
    share: float = 1.0  # the chance that an answer is about the truth
    fake: Floats | None = field(default=None, repr=False)  # of fake values; None: zero vectors

    @property
    def name(self) -> str:
        return self.attribute.name

    @property
    def label(self) -> str:
        """The mechanism's name as surveys, plans and results show it."""
        return self.record.name

    @property
    def k(self) -> int:
        return self.attribute.k

    @property
    def faked(self) -> bool:
        return self.share < 1

    @property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """Digests of all integers that its answers are drawn with (PROTOCOLS 8)."""
        encoding, second = self.mechanism.encoding, self.mechanism.second
        drawn = {
            "traits": encoding.trait_tables(),
            "first": encoding.memo_tables(self.mechanism.first, self.fake),
            "second": () if second is None else encoding.report_tables(second),
        }
        return {part: tuple(map(digest, tables)) for part, tables in drawn.items()}

    @cached_property
    def channel(self) -> Channel:
        """The channel of one report."""
        return self.mechanism.channel(self.share, self.fake_answer)

    @cached_property
    def memo_channel(self) -> Channel:
        """The channel of the memos alone: the part of the noise that repeats in every period."""
        return self.mechanism.memo_channel(self.share, self.fake)

    @property
    def fake_answer(self) -> Floats | None:
        """The distribution of fake values as answers have it.

        A direct fake is a symbol, so round 2 changes its distribution; of a unary one it flips bits.
        """
        second = self.mechanism.second
        if self.fake is None or not self.mechanism.encoding.exclusive or not isinstance(second, Flip):
            return self.fake
        return np.asarray(self.fake * second.gain + second.q)
