"""Does a survey keep its epsilon? Measured with coins (docs/audit.md, section 5).

Each device tosses a coin for one of two histories. Whoever sees its reports guesses the coin from the exact likelihood
ratio, or abstains where the ratio is near 1. Under any mechanism with loss eps a guess is right with at most
e^eps / (1 + e^eps), so of s guesses the number of right ones is bounded by a binomial variable, and

    eps >= ln(b / (1 - b)),    b the lower end of the exact interval of the chance to be right

From which ratio on to guess is decided on devices that are not counted: deciding it on the same devices would find a
loss where there is none.

An experiment is a pair of histories that coins choose between; each look at its reports has a promise of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log

import numpy as np

from lab.attacks.histories import Coins, ratios, returning_coins, steady_coins
from lab.attacks.observed import Observed
from lab.attacks.trials import lower_end
from lab.audit.report import Figure, plain
from protocols.arrays import Floats, Mask, Whole
from protocols.scheme import Scheme

SPARED = 5  # every so many-th device decides from which ratio on to guess
NEAR = 1e-9
STEPS = 200  # thresholds that are tried
CERTAIN = 1e6  # in place of an infinite ratio
MOST = 30.0  # a loss beyond which no number of devices tells anything
MOST_RETURNS = 100  # periods: beyond, likelihoods of whole histories are too small for a float


@dataclass(frozen=True)
class Look:
    """One way to look at the reports of an experiment: how many of them, and at which attribute (None: at all)."""

    target: str
    periods: range
    promise: float | None
    shown: str | None = None
    exact: bool = True


@dataclass
class Experiment:
    """Devices whose coins choose between two histories."""

    knows: str
    coins: Coins
    looks: Sequence[Look]
    _seen: list[list[tuple[Floats, Mask]]] = field(default_factory=list)

    def add(self, observed: Observed, tossed: Mask) -> None:
        """One block of devices, and what their coins showed."""
        found = [ratios(observed, self.coins, look.periods, look.shown) for look in self.looks]
        self._seen.append([(scores, tossed[rows]) for rows, scores in found])

    def figures(self, alpha: float) -> list[Figure]:
        """What the coins prove, each with the whole of `alpha`."""
        return [self._figure(look, seen, alpha) for look, *seen in zip(self.looks, *self._seen, strict=True)]

    def _figure(self, look: Look, seen: Sequence[tuple[Floats, Mask]], alpha: float) -> Figure:
        scores, tossed = (np.concatenate(blocks) for blocks in zip(*seen, strict=True))
        bound, guesses = coin_audit(scores, tossed, alpha)
        detectable = None if look.promise is None else smallest_violation(look.promise, guesses, alpha)
        facts = {"measured": bound, "low": bound, "trials": guesses, "exact": look.exact, "detectable": detectable}
        return plain("epsilon", look.target, self.knows, len(look.periods), "nats", look.promise, **facts)


def experiments(scheme: Scheme, periods: int) -> list[Experiment]:
    """What is measured for a survey: tuples, single attributes, and a value that comes back."""
    promise, questions, steady = scheme.guarantees, scheme.questions, "values never change"
    spans = [range(1)] if periods == 1 else [range(1), range(periods)]
    looks = [Look("whole tuples", span, promise.constant(len(span)).whole) for span in spans]
    if len(questions) > 1 and scheme.survey.solution == "spl":
        looks += [
            Look(question.name, span, promise.per_attribute(len(span))[place], shown=question.name)
            for span in spans
            for place, question in enumerate(questions)
        ]
    found = [Experiment(steady, steady_coins(scheme, periods), looks)]
    if questions[0].faked:
        place = int(np.argmax(promise.per_attribute(periods)))
        name = questions[place].name
        looks = [Look(name, span, promise.per_attribute(len(span))[place]) for span in spans]
        found.append(Experiment(steady, steady_coins(scheme, periods, name), looks))
    traits = any(question.mechanism.encoding.lifelong for question in questions)  # then changes cannot be followed
    if scheme.survey.longitudinal and not traits and periods >= 2:
        span = range(min(periods, MOST_RETURNS))
        loss = promise.any(len(span))
        look = Look("whole tuples", span, loss.whole, exact=loss.exact)
        found.append(Experiment("a value that comes back, or never changes", returning_coins(scheme, periods), [look]))
    return found


def coin_audit(ratios: Floats, coins: Mask, alpha: float, delta: float = 0.0) -> tuple[float, int]:
    """A loss that the mechanism has at least, with 1 - alpha, and how many guesses prove it; but for a chance delta."""
    spared, right = np.arange(len(ratios)) % SPARED == 0, (ratios > 0) == coins
    threshold = _best_threshold(np.abs(ratios[spared]), right[spared], alpha, delta)
    guessed = ~spared & (np.abs(ratios) >= threshold - NEAR)
    guesses, good = int(guessed.sum()), int(right[guessed].sum())
    if delta == 0:
        return lower_bound(good, guesses, alpha), guesses
    odds = float(_odds_beyond(np.array(good), np.array(guesses - good), int((~spared).sum()), alpha, delta))
    return max(0.0, log(odds)) if odds > 0 else 0.0, guesses


def _odds_beyond(right: Whole, wrong: Whole, coins: int, alpha: float, delta: float) -> Floats:
    """The least odds of right guesses, but for a chance delta, that so many right and wrong ones of all coins prove.

    With a loss of eps, P(right) <= e^eps P(wrong) + delta, of each coin and so on average over coins.
    """
    from scipy.stats import beta  # takes over a second to import

    low = np.where(right > 0, beta.ppf(alpha / 2, np.maximum(right, NEAR), coins + 1 - right), 0.0)
    return np.asarray((low - delta) / beta.isf(alpha / 2, wrong + 1, np.maximum(coins - wrong, NEAR)))


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
    from scipy.optimize import brentq  # takes over a second to import

    def spare(loss: float) -> float:
        return guesses * _divergence(loss, claim) - log(1 / alpha)

    return float(brentq(spare, claim, MOST)) if claim < MOST and spare(MOST) >= 0 else None


def _divergence(real: float, claim: float) -> float:
    p, q = (1 / (1 + exp(-eps)) for eps in (real, claim))
    return p * log(p / q) + (1 - p) * log((1 - p) / (1 - q)) if p < 1 else -log(q)


def _best_threshold(sizes: Floats, right: Mask, alpha: float, delta: float) -> float:
    """The size of a ratio from which on guesses prove the largest loss."""
    from scipy.stats import beta  # takes over a second to import

    order = np.argsort(-sizes, kind="stable")
    sizes = np.minimum(sizes, CERTAIN)[order].round(9)
    ends = np.flatnonzero(np.append(np.diff(sizes) < 0, True) & (sizes > 0))  # equal ratios are taken or left together
    if not len(ends):
        return NEAR
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, STEPS).astype(np.intp))]
    good = np.cumsum(right[order].astype(np.int64))[ends]
    if delta > 0:
        return float(sizes[ends[np.argmax(_odds_beyond(good, ends + 1 - good, len(sizes), alpha, delta))]])
    chances = np.where(good > 0, beta.ppf(alpha, np.maximum(good, NEAR), ends + 2 - good), 0.0)
    return float(sizes[ends[np.argmax(chances)]])
