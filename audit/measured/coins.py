"""Does a survey keep its epsilon? Measured with coins (docs/audit.md, section 5).

Each device tosses a coin for one of two histories. Whoever sees its reports guesses the coin from the exact likelihood
ratio, or abstains where the ratio is near 1. Under any mechanism with loss eps a guess is right with at most
e^eps / (1 + e^eps), so of s guesses the number of right ones is bounded by a binomial variable, and

    eps >= ln(b / (1 - b)),    b the lower end of the exact interval of the chance to be right

From which ratio on to guess is decided on devices that are not counted, or from the exact law: deciding it on the same
devices would find a loss where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log

import numpy as np

from audit.intervals import Trials
from protocols.arrays import Floats, Mask

SPARED = 5  # every so many-th device decides from which ratio on to guess
NEAR = 1e-9
MOST = 30.0  # a loss beyond which no number of devices tells anything

Law = tuple[Floats, Floats, Floats]  # ln of the ratio, its chance under heads, under tails


@dataclass(frozen=True)
class CoinAudit:
    """What the coins of some devices prove: `bound` is a loss that the mechanism has at least, with 1 - alpha."""

    bound: float
    right: float
    guesses: int
    devices: int
    threshold: float


def coin_audit(
    ratios: Floats, coins: Mask, alpha: float, law: Law | None = None, threshold: float | None = None
) -> CoinAudit:
    """What the ratios prove. `law`: their exact law, from which the threshold follows."""
    if threshold is None and law is not None:
        threshold = _best_threshold(law, len(ratios), alpha)
    if threshold is None:
        spared = np.arange(len(ratios)) % SPARED == 0
        threshold = _measured_threshold(ratios[spared], coins[spared], alpha)
        ratios, coins = ratios[~spared], coins[~spared]
    guessed = np.abs(ratios) >= threshold - NEAR
    right = int(((ratios > 0) == coins)[guessed].sum())
    guesses = int(guessed.sum())
    return CoinAudit(lower_bound(right, guesses, alpha), right, guesses, len(ratios), threshold)


def lower_bound(right: float, guesses: float, alpha: float) -> float:
    """The loss that so many right guesses prove.

    >>> round(lower_bound(1000, 1000, 0.01), 2), lower_bound(5, 10, 0.01), lower_bound(0, 0, 0.01)
    (5.38, 0.0, 0.0)
    """
    if guesses == 0:
        return 0.0
    chance = Trials(right, guesses).at_least(alpha)
    return max(0.0, log(chance / (1 - chance))) if 0 < chance < 1 else 0.0


def smallest_violation(claim: float, guesses: float, alpha: float) -> float | None:
    """The smallest loss above a claim that so many guesses at that loss would have refuted; None: none up to MOST."""
    low, high = claim, MOST
    if guesses <= 0 or claim >= MOST:
        return None
    if guesses * _divergence(high, claim) < log(1 / alpha):
        return None
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if guesses * _divergence(middle, claim) < log(1 / alpha) else (low, middle)
    return high


def _divergence(real: float, claim: float) -> float:
    p, q = (1 / (1 + exp(-eps)) for eps in (real, claim))
    return p * log(p / q) + (1 - p) * log((1 - p) / (1 - q)) if p < 1 else -log(q)


def expected_bound(law: Law, devices: int, alpha: float) -> float:
    """What the coins of so many devices prove if as many guesses are right as the law says."""
    return lower_bound(*_expected(law, devices, _best_threshold(law, devices, alpha)), alpha)


def _best_threshold(law: Law, devices: int, alpha: float) -> float:
    """The threshold with the largest bound to expect."""
    steps = np.unique(np.abs(law[0]).round(9))
    return _largest_bound(steps, lambda step: _expected(law, devices, step), alpha)


def _expected(law: Law, devices: int, step: float) -> tuple[float, float]:
    """How many guesses are right, and how many are made."""
    scores, heads, tails = law
    beyond = _beyond(scores, step)
    right, guessed = np.where(scores > 0, heads, tails) / 2, (heads + tails) / 2
    return devices * float(right[beyond].sum()), devices * float(guessed[beyond].sum())


def _measured_threshold(ratios: Floats, coins: Mask, alpha: float) -> float:
    if not len(ratios):
        return NEAR
    steps = np.unique(np.quantile(np.abs(ratios), np.linspace(0, 1, 200, endpoint=False)))
    good = (ratios > 0) == coins

    def counted(step: float) -> tuple[float, float]:
        beyond = _beyond(ratios, step)
        return float(good[beyond].sum()), float(beyond.sum())

    return _largest_bound(steps, counted, alpha)


def _beyond(scores: Floats, step: float) -> Mask:
    return np.asarray(np.abs(scores) >= step - NEAR)


def _largest_bound(steps: Floats, counted: Callable[[float], tuple[float, float]], alpha: float) -> float:
    bounds = [lower_bound(*counted(float(step)), alpha) for step in steps if step > 0] or [0.0]
    kept = [float(step) for step in steps if step > 0] or [NEAR]
    return kept[int(np.argmax(bounds))]
