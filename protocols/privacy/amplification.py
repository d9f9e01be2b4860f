"""How much the sampled attribute may spend when the others are fake (PROTOCOLS 4).

tuple        e' is the declared eps: two tuples that differ everywhere are separated by exactly e'
published    ln(d (e^eps - 1) + 1), as printed, which holds for one attribute and equal domains only
attribute    the e' at which the exact loss where one attribute changes, the worst of them, is the declared eps
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import expm1, log1p

from protocols.mechanisms.portable import round_down
from protocols.privacy.hidden import attribute_losses
from protocols.question import Question

Budgets = tuple[float, float | None]
Ask = Callable[[Budgets], Sequence[Question]]  # the questions at budgets (e' for ever, e' of one report)


def amplified(eps: float, attributes: int) -> float:
    """The budget of the sampled attribute as printed.

    >>> round(amplified(1.0, 4), 4)
    2.0635
    """
    return round_down(log1p(attributes * expm1(eps)))


def calibrated(declared: Budgets, ask: Ask) -> Budgets:
    """The budgets at which the worst attribute's exact loss is the declared one: of the memos, then of one report.

    The memos come first: what they lose depends on round 1 only, whereas a report's fakes went through both rounds.
    """
    forever, one = declared

    def excess_for_ever(e: float) -> float:
        return max(attribute_losses(ask((e, None)), 1, fresh=False)) - forever

    high = 2 * forever
    while excess_for_ever(high) < 0:
        high *= 2
    spent = round_down(root(excess_for_ever, forever, high))
    if one is None:
        return spent, None

    def excess_of_one_report(e: float) -> float:
        return max(attribute_losses(ask((spent, e)), 1, fresh=False)) - one

    return spent, round_down(root(excess_of_one_report, one / 2, spent))


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """The argument between `low` and `high`, at which `function` has opposite signs, where it is zero.

    >>> round(root(lambda x: x * x - 2, 0, 2), 12)
    1.414213562373
    """
    from scipy.optimize import brentq  # takes over a second to import

    return float(brentq(function, low, high, xtol=1e-16, rtol=1e-15))
