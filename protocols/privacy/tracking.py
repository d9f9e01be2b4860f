"""Trackability: how much likelier reports are if they come from one device than if they come from two (PROTOCOLS 9).

It is the largest ln of

    P(2t reports | one device) / P(t of them | one device) P(the other t | another device)

where both devices have the same value, which never changes (Naor and Vexler, FORC 2020). Given the value, reports of
two devices are independent, and those of one share its memo. The memo is a mixture, and the ratio is largest where all
reports say the same, so it follows from two likelihoods (for bits from those of each bit). Fresh noise makes reports of
one device independent too: there only lifelong traits track, by the logarithm of the number of their values.
"""

from __future__ import annotations

from math import exp, inf, log, log1p

from protocols.arrays.columns import PackedBits
from protocols.mechanisms.mechanism import Mechanism
from protocols.mechanisms.rounds import Flip
from protocols.privacy.crowd import Evidence

KEPT = Flip(1.0, 0.0)


def trackability(reports: Evidence, t: float) -> float | None:
    """Of t and t reports that show this; infinity: of any number. None where no closed form is known.

    There is none for ordered mechanisms with memos, nor where some of the attributes are fake.
    """
    traits = log(reports.traits)
    if not reports.memoised:
        return traits
    parts = [memo_trackability(q.mechanism, t) if not q.faked else None for q in reports.questions]
    known = [part for part in parts if part is not None]
    return traits + sum(known) if len(known) == len(parts) else None


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
    memo = mechanism.encoding.memo
    if not isinstance(memo, PackedBits):
        return max(_odds(share, _ratio(second.p, second.q, t)) for share in (first.p, first.q))
    own, other = (
        max(_odds(share, _ratio(second.p, second.q, t)), _odds(share, _ratio(1 - second.p, 1 - second.q, t)))
        for share in (first.p, first.q)
    )
    least_own = memo.count == mechanism.k  # of buckets a device may hold none with its value
    return max(own + (memo.count - 1) * other, -inf if least_own else memo.count * other)


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
