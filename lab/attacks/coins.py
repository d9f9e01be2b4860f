"""Does a survey keep its epsilon? What it promises, and what coins prove (docs/audit.md, section 5).

From which likelihood ratio on to guess a coin is decided on devices that are not counted: deciding it on the same
devices would find a loss where there is none.

An experiment is a pair of histories that coins choose between; each look at its reports has a promise of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from typing import Any

import numpy as np

from lab.attacks.accuracy import SEEN, asked, guess, of_values
from lab.attacks.guessing import likelihood
from lab.attacks.likelihoods import chunks
from lab.attacks.observed import Observed
from lab.attacks.report import Attacker, Figure, plain
from protocols.arrays import Floats, Mask, Places, Values, Whole
from protocols.privacy import Loss
from protocols.scheme import Scheme

SPARED = 5  # every so many-th device decides from which ratio on to guess
NEAR = 1e-9
STEPS = 200  # thresholds that are tried
CERTAIN = 1e6  # in place of an infinite ratio
MOST = 30.0  # a loss beyond which no number of devices tells anything
MOST_RETURNS = 100  # periods: beyond, likelihoods of whole histories are too small for a float
History = Sequence[int]  # a value for each period


@dataclass(frozen=True)
class Coins:
    """Two histories of every attribute: of devices whose coin shows heads, and of those with tails."""

    heads: dict[str, History]
    tails: dict[str, History]

    @property
    def change(self) -> bool:
        """Whether any value changes."""
        return any(len(set(history)) > 1 for side in (self.heads, self.tails) for history in side.values())

    def values(self, coins: Mask, period: int) -> dict[str, Whole]:
        """The values of devices in a period."""
        return {name: np.where(coins, self.heads[name][period], self.tails[name][period]) for name in self.heads}


def steady_coins(scheme: Scheme, periods: int, attribute: str | None = None) -> Coins:
    """Two tuples that never change and are as far apart as two can be: in all attributes, or in one.

    Ordered values are furthest apart at the ends of their range, values among fakes where fakes are rarest.
    """
    ends = {}
    for question in scheme.questions:
        if question.axes:
            continue  # its pairs follow from the values of its attributes
        first, last = 0, question.k - 1
        if question.fake is not None:
            first, last = (int(place) for place in np.argsort(question.fake, kind="stable")[:2])
        ends[question.name] = first, last if attribute in (None, question.name) else first
    return _coins(scheme, *({name: np.full(periods, pair[side]) for name, pair in ends.items()} for side in (0, 1)))


def returning_coins(scheme: Scheme, periods: int) -> Coins:
    """A value that never changes, against two that alternate: an observer may learn that a value came back."""
    histories = np.zeros(periods, dtype=np.int64), np.arange(periods) % 2
    return _coins(scheme, *({a.name: history for a in scheme.survey.attributes} for history in histories))


def _coins(scheme: Scheme, *sides: Mapping[str, Values]) -> Coins:
    """Histories of all questions, from those of the attributes."""
    return Coins(*({q.name: q.places(side).tolist() for q in scheme.questions} for side in sides))


def ratios(observed: Observed, coins: Coins, periods: range, shown: str | None = None) -> tuple[Places, Floats]:
    """Of devices that report in all these periods: ln of the likelihood of their reports under heads against tails.

    `shown`: only the answers to this attribute are looked at.
    """
    rows = np.flatnonzero(observed.there(periods) & (True if shown is None else observed.answering(shown)))
    width = sum(question.k for question in observed.scheme.questions)
    parts = [_ratios(observed, coins, periods, some, shown) for some in chunks(rows, width)]
    return rows, np.concatenate([np.zeros(0), *parts])


def held(history: tuple[int, ...], cap: int | None) -> tuple[int, ...]:
    """The cells whose memos a device with a cap really reports.

    >>> held((0, 1, 0, 2), cap=2), held((0, 1, 0, 2), cap=3)
    ((0, 1, 1, 1), (0, 1, 0, 2))
    """
    for place, cell in enumerate(history, 1):
        if len(set(history[:place])) == cap:
            return (*history[:place], *[cell] * (len(history) - place))
    return history


def _ratios(observed: Observed, coins: Coins, periods: range, rows: Places, shown: str | None) -> Floats:
    survey, sides = observed.scheme.survey, []
    asked = [question for question in observed.scheme.questions if shown in (None, question.name)]
    for side in (coins.heads, coins.tails):
        total = np.zeros((len(asked), len(rows)))
        for place, question in enumerate(asked):
            own = np.flatnonzero(observed.answering(question.name)[rows])
            cells = tuple(side[question.name][period] for period in periods)
            if survey.longitudinal:
                cells = held(cells, survey.memo_cap)  # a cap decides which memo a device goes on with
            for cell in dict.fromkeys(cells):  # reports of the same value come from one memo
                within = [period for period, at in zip(periods, cells, strict=True) if at == cell]
                total[place, own] += likelihood(observed, question, rows[own], within).against_fake[:, cell]
        sides.append(np.logaddexp.reduce(total, axis=0) if asked[0].faked else total.sum(axis=0))
    return np.asarray(sides[0] - sides[1])


@dataclass
class Look:
    """One way to look at the reports of an experiment: how many of them, and at which attribute (None: at all)."""

    target: str
    periods: range
    promise: float | None
    shown: str | None = None
    exact: bool = True
    seen: list[tuple[Floats, Mask]] = field(default_factory=list)  # ratios, and what coins showed


@dataclass(frozen=True)
class Experiment:
    """Devices whose coins choose between two histories."""

    knows: str
    coins: Coins
    looks: Sequence[Look]

    def add(self, observed: Observed, tossed: Mask) -> None:
        """One block of devices, and what their coins showed."""
        for look in self.looks:
            rows, scores = ratios(observed, self.coins, look.periods, look.shown)
            look.seen.append((scores, tossed[rows]))

    def figures(self, alpha: float) -> list[Figure]:
        """What the coins prove, each with the whole of `alpha`."""
        found = []
        for look in self.looks:
            scores, tossed = (np.concatenate(blocks) for blocks in zip(*look.seen, strict=True))
            terms = look.promise, alpha, len(look.periods)
            found.append(loss_figure(look.target, self.knows, scores, tossed, *terms, exact=look.exact))
        return found


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


def loss_figure(
    target: str, knows: str, ratios: Floats, coins: Mask, promise: float | None, alpha: float, reports: int = 1,
    delta: float = 0.0, **more: Any,
) -> Figure:  # fmt: skip
    """What coins prove about a loss, beside what is promised; but for a chance delta."""
    bound, guesses = coin_audit(ratios, coins, alpha, delta)
    detectable = None if promise is None or delta else smallest_violation(promise, guesses, alpha)
    facts = {"measured": bound, "low": bound, "trials": guesses, "detectable": detectable, **more}
    return plain("epsilon", target, knows, reports, promise, **facts)


def coin_audit(ratios: Floats, coins: Mask, alpha: float, delta: float = 0.0) -> tuple[float, int]:
    """A loss that the mechanism has at least, with 1 - alpha, and how many guesses prove it; but for a chance delta."""
    spared, right = np.arange(len(ratios)) % SPARED == 0, (ratios > 0) == coins
    threshold = _best_threshold(np.abs(ratios[spared]), right[spared], alpha, delta)
    guessed = ~spared & (np.abs(ratios) >= threshold - NEAR)
    good, guesses = np.array([(right & guessed).sum()]), np.array([guessed.sum()])
    (odds,) = least_odds(good, guesses, int((~spared).sum()), alpha, delta)
    return max(0.0, log(odds)) if odds > 0 else 0.0, int(guesses[0])


def least_odds(right: Whole, guesses: Whole, coins: int, alpha: float, delta: float = 0.0) -> Floats:
    """The least odds of a right guess, but for a chance delta, that so many right ones of guesses of all coins prove.

    With a loss of eps, P(right) <= e^eps P(wrong) + delta, of each coin and so on average over coins. Without delta,
    coins that are not guessed do not count.

    >>> np.log(least_odds(np.array([1000]), np.array([1000]), 1000, 0.01)).round(2).tolist()
    [5.38]
    """
    from scipy.stats import beta  # takes over a second to import

    if delta == 0:
        low = np.where(right > 0, beta.ppf(alpha, np.maximum(right, NEAR), guesses - right + 1), 0.0)
        return np.asarray(low / (1 - low))
    wrong = guesses - right
    low = np.where(right > 0, beta.ppf(alpha / 2, np.maximum(right, NEAR), coins + 1 - right), 0.0)
    return np.asarray((low - delta) / beta.isf(alpha / 2, wrong + 1, np.maximum(coins - wrong, NEAR)))


def smallest_violation(claim: float, guesses: float, alpha: float) -> float | None:
    """The smallest loss above a claim that so many guesses at that loss would have refuted; None: none up to MOST."""
    from scipy.optimize import brentq  # takes over a second to import

    def spare(loss: float) -> float:
        p, q = (1 / (1 + exp(-eps)) for eps in (loss, claim))
        apart = p * log(p / q) + (1 - p) * log((1 - p) / (1 - q)) if p < 1 else -log(q)
        return guesses * apart - log(1 / alpha)

    return float(brentq(spare, claim, MOST)) if claim < MOST and spare(MOST) >= 0 else None


def _best_threshold(sizes: Floats, right: Mask, alpha: float, delta: float) -> float:
    """The size of a ratio from which on guesses prove the largest loss."""
    order = np.argsort(-sizes, kind="stable")
    sizes = np.minimum(sizes, CERTAIN)[order].round(9)
    ends = np.flatnonzero(np.append(np.diff(sizes) < 0, True) & (sizes > 0))  # equal ratios are taken or left together
    if not len(ends):
        return NEAR
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, STEPS).astype(np.intp))]
    good = np.cumsum(right[order].astype(np.int64))[ends]
    return float(sizes[ends[np.argmax(least_odds(good, ends + 1, len(sizes), alpha, delta))]])


def losses(scheme: Scheme, attacker: Attacker) -> Iterator[Figure]:
    """What the survey promises; beside it, what guesses of values would prove of it."""
    promise = scheme.guarantees

    def both(knows: str, t: float, loss: Loss) -> Iterator[Figure]:
        yield plain("epsilon", "whole tuples", knows, t, loss.whole, exact=loss.exact)
        if len(scheme.questions) > 1:
            yield plain("epsilon", "one attribute", knows, t, loss.attribute, exact=loss.exact)

    for t in SEEN:
        yield from both("values never change", t, promise.constant(t))
    yield from both("any two histories", 10, promise.any(10))
    if attacker == "published":
        for question in filter(of_values, asked(scheme)):
            accuracy = guess(question, 1, scheme.survey.longitudinal)
            if accuracy is not None and accuracy < 1:
                reached = log(accuracy * (question.k - 1) / (1 - accuracy)) if question.k > 1 else 0.0
                loss = promise.per_attribute(1)[scheme.survey.index(question.name)]
                knows = "guesses of the value (published attacker)"
                yield plain("epsilon", question.name, knows, 1, loss, measured=max(0.0, reached))
