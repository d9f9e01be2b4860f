"""What t linked answers about one value reveal, exactly (PROTOCOLS 3).

The worst sequence repeats one answer, so t answers act like a single round whose likelihoods are the second round's to
the power t, and `Flip.then` chains them to round 1. Only ratios matter, so the larger is scaled to 1: t may be any
number, infinity included, which means the memo itself. What a device keeps for life (its hash, its buckets) is assumed
to be known to the observer.
"""

from dataclasses import dataclass
from math import expm1, inf, log, log1p

import numpy as np

from protocols.arrays.columns import PackedBits
from protocols.mechanisms.mechanism import Mechanism
from protocols.mechanisms.places.displacement import rate_after
from protocols.mechanisms.places.rounds import PlaceRound
from protocols.mechanisms.rounds import Flip, MatrixRound, end_evidence


@dataclass(frozen=True)
class SymbolOdds:
    """Likelihoods of the worst t answers: under the value they name, under another, and given the memo itself."""

    value: Flip
    memo: Flip

    @property
    def loss(self) -> float:
        return log(self.value.p / self.value.q)


@dataclass(frozen=True)
class BitOdds:
    """Likelihood ratios, bit set in the truth against not: `up` of t ones, `down` of t zeros."""

    up: float
    down: float

    @property
    def loss(self) -> float:
        """Between two values with a bit each: one bit supports the first value, the other contradicts the second."""
        return log(self.up / self.down)

    @property
    def single(self) -> float:
        """Between a value with a bit and one without any."""
        return max(log(self.up), -log(self.down))


def symbol_odds(mechanism: Mechanism, t: float) -> SymbolOdds:
    """The odds of t linked symbols.

    >>> from protocols.mechanisms.catalogue import build
    >>> from protocols.mechanisms.mechanism import Budget
    >>> mechanism = build("l-grr", 10, Budget(2.0, 1.0))
    >>> [round(symbol_odds(mechanism, t).loss, 4) for t in (1, 2, 5, inf)]
    [1.0, 1.7532, 1.9992, 2.0]
    """
    first, second = _flips(mechanism)
    memo = Flip(1.0, (second.q / second.p) ** t)
    return SymbolOdds(first.then(memo), memo)


def bit_odds(mechanism: Mechanism, t: float) -> BitOdds:
    """The odds of t linked answers about one bit."""
    first, second = _flips(mechanism)
    ones = first.then(Flip(1.0, (second.q / second.p) ** t))
    zeros = first.then(Flip(((1 - second.p) / (1 - second.q)) ** t, 1.0))
    return BitOdds(ones.p / ones.q, zeros.p / zeros.q)


def loss(mechanism: Mechanism, t: float = 1) -> float:
    """The largest log-ratio between two values, or sets of them, after t linked answers from their memos.

    Every element of a set is drawn with a chance of 1/L at most. So likelihoods of two sets differ by one L-th of what
    those of two elements do, if an answer names one of them. If it has bits, this is a bound: that of two elements.
    """
    element, encoding = element_loss(mechanism, t), mechanism.encoding
    shown = encoding.several == 1 or not encoding.exclusive or encoding.lifelong  # a lifelong slot is known
    return element if shown else log1p(expm1(element) / encoding.several)


def element_loss(mechanism: Mechanism, t: float = 1) -> float:
    """The same between two values, or two elements of sets if it is known that they were drawn."""
    if isinstance(mechanism.first, PlaceRound):
        rate, second = rate_after(mechanism.first, mechanism.second, t), mechanism.second
        if isinstance(second, PlaceRound):
            rate = min(rate, t * second.rate)  # whatever two memos are, each report adds that much over any distance
        return rate * mechanism.first.area.widest
    if isinstance(mechanism.first, MatrixRound):
        return float(np.ptp(end_evidence(mechanism.first, mechanism.second, t)))
    if not isinstance(mechanism.encoding.memo, PackedBits):
        return symbol_odds(mechanism, t).loss
    odds = bit_odds(mechanism, t)
    return odds.loss if mechanism.encoding.memo.count > 1 else odds.single


def neighbour_loss(mechanism: Mechanism, t: float = 1) -> float:
    """The largest log-ratio between two neighbouring values of an ordered domain: what one unit of distance costs."""
    if isinstance(mechanism.first, PlaceRound):
        return rate_after(mechanism.first, mechanism.second, t)
    return float(np.diff(end_evidence(mechanism.first, mechanism.second, t)).max())


def loss_of_values(mechanism: Mechanism, count: int) -> float:
    """The largest log-ratio between two histories of `count` cells each that are the same up to renaming the cells.

    Every cell has a memo of its own, so the losses add up, with two exceptions: in an ordered domain only so many
    values are far from others, and of lifelong buckets the cell of all values that are not held differs from each other
    one by one bit (PROTOCOLS 5). Of sets, what hides the first element that was drawn does not hide a second one.
    """
    if isinstance(mechanism.first, PlaceRound):  # few cells are as far from others as the widest two: a bound
        return count * loss(mechanism, inf)
    if isinstance(mechanism.first, MatrixRound):
        ends = np.repeat(np.arange(mechanism.encoding.k), 2)  # each value once in either history
        return neighbour_loss(mechanism, inf) * float(ends[-count:].sum() - ends[:count].sum())
    memo = mechanism.encoding.memo
    if isinstance(memo, PackedBits) and memo.count < mechanism.encoding.k and count > memo.count:
        return memo.count * bit_odds(mechanism, inf).loss
    return loss(mechanism, inf) if count == 1 else count * element_loss(mechanism, inf)


def _flips(mechanism: Mechanism) -> tuple[Flip, Flip]:
    first, second = mechanism.first, mechanism.second or Flip(1.0, 0.0)
    assert isinstance(first, Flip) and isinstance(second, Flip), "matrices have no two-valued odds"
    return first, second
