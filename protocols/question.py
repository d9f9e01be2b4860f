"""One attribute as a survey asks it: a mechanism, and how often its answer is about the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.mechanisms.channels import Channel
from protocols.mechanisms.encodings import FakeKind
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.record import MechanismRecord
from protocols.mechanisms.rounds import Flip, Round
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
            "first": encoding.memo_tables(self.mechanism.first, self.fake_kind, self.fake),
            "second": () if second is None else encoding.report_tables(second),
        }
        return {part: tuple(map(digest, tables)) for part, tables in drawn.items()}

    @property
    def terms(self) -> dict[str, Any]:
        """Everything that a device needs to answer it: numbers that its tables follow from, and the tables' digests."""
        second = self.mechanism.second
        return {
            "mechanism": self.label,
            "encoding": self.mechanism.encoding.terms,
            "fakes": self.fake_kind,
            "first": self.mechanism.first.numbers,
            "second": None if second is None else second.numbers,
            "tables": self.tables,
        }

    @cached_property
    def channel(self) -> Channel:
        """The channel of one report."""
        return self.mechanism.channel(self.share, self.fake_answer)

    @cached_property
    def memo_channel(self) -> Channel:
        """The channel of the memos alone: the part of the noise that repeats in every period."""
        return self.mechanism.memo_channel(self.share, self.fake_memo)

    @property
    def fake_kind(self) -> FakeKind | None:
        """What its fakes are; None where all answers are about the truth."""
        return self.record.fakes.kind if self.faked and self.record.fakes is not None else None

    @property
    def fake_memo(self) -> Floats | None:
        """The distribution of fake values as memos have it.

        A direct fake is a symbol, so noise changes its distribution: a noisy one went through round 1, a bare one did
        not. Of a unary fake a round flips bits, not the value.
        """
        return self._perturbed(self.fake, self.mechanism.first) if self.fake_kind == "noisy" else self.fake

    @property
    def fake_answer(self) -> Floats | None:
        """The distribution of fake values as answers have it."""
        return self._perturbed(self.fake_memo, self.mechanism.second)

    def _perturbed(self, shares: Floats | None, noise: Round | None) -> Floats | None:
        if shares is None or not self.mechanism.encoding.exclusive or not isinstance(noise, Flip):
            return shares
        return np.asarray(shares * noise.gain + noise.q)
