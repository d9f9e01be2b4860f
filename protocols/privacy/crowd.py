"""Whether a crowd of devices hides which reports come from one of them, and how far it can track one (PROTOCOLS 9).

Two reports of a device are alike in two ways: their answers come from one memo (`linking`), and both show what the
device keeps for life (its sampled attribute under smp, its hash, its buckets, its place under one_in). Both are
measured in bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import exp, inf, log, log1p, log2, prod

import numpy as np

from protocols.arrays.columns import PackedBits
from protocols.mechanisms.mechanism import Mechanism
from protocols.mechanisms.rounds import Flip
from protocols.privacy.hidden import log_extremes
from protocols.privacy.linking import KEPT, first_guess, pair_information
from protocols.question import Question

SPARE_BITS = 10  # by which log2 of the crowd must exceed what links
HARMLESS_BITS = 1.0
MOST_HIDDEN = 14  # attributes: all combinations of two extremes of each are gone through


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


def trackability(reports: Evidence, t: float) -> float | None:
    """How much likelier t and t reports that show this are from one device than from two, as ln; of the same value.

    t may be infinity: any number. None where no closed form is known: for ordered mechanisms with memos, and where some
    of the attributes are fake and memoised.
    """
    traits = log(reports.traits)
    if not reports.memoised:
        hidden = _hidden_trackability(reports.questions, t) if reports.questions[0].faked else 0.0
        return None if hidden is None else traits + hidden
    parts = [memo_trackability(q.mechanism, t) if not q.faked else None for q in reports.questions]
    known = [part for part in parts if part is not None]
    return traits + sum(known) if len(known) == len(parts) else None


def _hidden_trackability(questions: Sequence[Question], t: float) -> float | None:
    """Of fresh answers among fakes, where the attribute that is true was drawn for life.

    The same reports twice are the worst; then it is quasi-convex in each r_j, how much likelier t answers about
    attribute j are if they are true than if they are fake. So each r_j is as large or as small as possible. None where
    there are too many attributes to go through.
    """
    if len(questions) > MOST_HIDDEN:
        return None
    shares = np.array([question.share for question in questions])
    logs = np.array(list(product(*(log_extremes(question, 1) for question in questions))))
    logs -= logs.max(axis=1, keepdims=True)
    powers = np.where(logs == 0, 1.0, 0.0) if t == inf else np.exp(t * logs)
    return float(np.log(powers**2 @ shares / (powers @ shares) ** 2).max())


def memo_trackability(mechanism: Mechanism, t: float) -> float | None:
    """What one attribute's memos contribute.

    >>> from protocols.mechanisms.catalogue import build
    >>> from protocols.mechanisms.mechanism import Budget
    >>> grr, osue = build("l-grr", 10, Budget(2.0, 1.0)), build("l-osue", 40, Budget(2.0, 1.0))
    >>> [[round(memo_trackability(mechanism, t) or 0, 1) for t in (1, 3, inf)] for mechanism in (grr, osue)]
    [[0.7, 2.7, 2.8], [17.0, 75.7, 83.6]]
    """
    first, second = mechanism.first, mechanism.second or KEPT
    if not (isinstance(first, Flip) and isinstance(second, Flip)):
        return None
    memo, several = mechanism.encoding.memo, mechanism.encoding.several
    if not isinstance(memo, PackedBits):
        # Of devices with the same set, few drew the same element; a lifelong slot is known.
        own_share = first.p if mechanism.encoding.lifelong else first.q + first.gain / several
        return max(_odds(share, _ratio(second.p, second.q, t)) for share in (own_share, first.q))
    own, other = (
        max(_odds(share, _ratio(second.p, second.q, t)), _odds(share, _ratio(1 - second.p, 1 - second.q, t)))
        for share in (first.p, first.q)
    )
    least_own = memo.count == mechanism.encoding.k  # of buckets a device may hold none with its value
    return max(own + (memo.count - 1) * other, -inf if least_own else memo.count * other) + log(several)


def _ratio(supporting: float, otherwise: float, t: float) -> float:
    """ln of how much likelier t equal answers are given one memo than given another."""
    if supporting == 0 or otherwise == 0:
        return -inf if supporting == 0 else inf
    one = log(supporting / otherwise)
    return 0.0 if one == 0 else t * one


def _odds(share: float, ratio: float) -> float:
    """ln (share r^2 + 1 - share) / (share r + 1 - share)^2 with r = e^ratio.

    >>> round(_odds(0.25, inf), 4) == round(log(4), 4), round(_odds(0.25, -inf), 4) == round(log(4 / 3), 4)
    (True, True)
    """
    if ratio == inf:
        return -log(share)
    if ratio > 0:  # divided by r^2, so that nothing overflows
        rest = (1 - share) / share
        return log1p(rest * exp(-2 * ratio)) - 2 * log1p(rest * exp(-ratio)) - log(share)
    return log(share * exp(2 * ratio) + 1 - share) - 2 * log(share * exp(ratio) + 1 - share)
