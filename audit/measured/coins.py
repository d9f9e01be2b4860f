"""Does a survey keep its epsilon? Measured with coins (docs/audit.md, section 5).

Each device tosses a coin for one of two histories. Whoever sees its reports guesses the coin from the exact likelihood
ratio, or abstains where the ratio is near 1. Under any mechanism with loss eps a guess is right with at most
e^eps / (1 + e^eps), so of s guesses the number of right ones is bounded by a binomial variable, and

    eps >= ln(b / (1 - b)),    b the lower end of the exact interval of the chance to be right

From which ratio on to guess is decided on devices that are not counted, or from the exact law: deciding it on the same
devices would find a loss where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from audit.intervals import lower_end
from protocols.arrays import Floats, Mask

SPARED = 5  # every so many-th device decides from which ratio on to guess
NEAR = 1e-9
STEPS = 200  # thresholds that are tried
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
        threshold, _, _ = _best_threshold(*_expected(law, len(ratios)), alpha)
    if threshold is None:
        spared = np.arange(len(ratios)) % SPARED == 0
        good = ((ratios > 0) == coins)[spared].astype(np.float64)
        threshold, _, _ = _best_threshold(ratios[spared], good, np.ones(len(good)), alpha)
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
    chance = lower_end(right, guesses, alpha)
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
    _, right, guesses = _best_threshold(*_expected(law, devices), alpha)
    return lower_bound(right, guesses, alpha)


def _expected(law: Law, devices: int) -> tuple[Floats, Floats, Floats]:
    """For each ratio of a law, how many guesses are right, and how many are made."""
    scores, heads, tails = law
    return scores, devices * np.where(scores > 0, heads, tails) / 2, devices * (heads + tails) / 2


def _best_threshold(scores: Floats, right: Floats, guesses: Floats, alpha: float) -> tuple[float, float, float]:
    """The threshold with the largest bound; how many guesses beyond it are right, and how many are made."""
    from scipy.stats import beta  # takes over a second to import

    order = np.argsort(-np.abs(scores), kind="stable")
    sizes = np.abs(scores)[order].round(9)
    ends = np.flatnonzero(np.append(np.diff(sizes) < 0, True) & (sizes > 0))  # equal ratios are taken or left together
    if not len(ends):
        return NEAR, 0.0, 0.0
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, STEPS).astype(np.intp))]
    good, made = np.cumsum(right[order])[ends], np.cumsum(guesses[order])[ends]
    chances = np.where(good > 0, beta.ppf(alpha, np.maximum(good, NEAR), made - good + 1), 0.0)
    best = int(np.argmax(chances))
    return float(sizes[ends[best]]), float(good[best]), float(made[best])
