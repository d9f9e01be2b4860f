"""Losses where one attribute is true and the others are fake (PROTOCOLS 4).

With A_j(y|v) the chance of attribute j's answers under value v and F_j(y) their chance when fake, L_j(y|v) is
A_j(y|v) / F_j(y). Answers are chosen independently, so every loss is a maximum over the possible pairs
(L_j(y|v), L_j(y|v')).
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import exp, expm1, inf, log, log1p

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.arrays.columns import PackedBits
from protocols.mechanisms.portable import round_down
from protocols.privacy.linked import SymbolOdds, bit_odds, loss, symbol_odds
from protocols.question import Question

CASES = np.indices((4, 4, 2, 2, 2)).reshape(5, -1)  # the places of two values; all ones or all zeros, of three bits


def possible_pairs(question: Question, t: float) -> Floats:
    """Rows (L(y|v), L(y|v')) that contain every maximum of first - rate * second.

    L is a ratio of functions that are linear in each bit's odds (or in each symbol's likelihood), and linear in the
    fake shares of the values concerned. Such a ratio is monotone in each of them, so the extremes suffice: odds of
    all ones or all zeros, and values with the smallest and largest fake shares (two of each, as v and v' differ).
    """
    if isinstance(question.mechanism.encoding.memo, PackedBits):
        return _possible_bit_pairs(question, t)
    odds = symbol_odds(question.mechanism, t)
    shares = _fake_symbols(question, odds)
    pairs = np.array(list(product((odds.value.p, odds.value.q), repeat=2)))
    return np.concatenate([pairs / shares.min(), pairs / shares.max()])


def _fake_symbols(question: Question, odds: SymbolOdds) -> Floats:
    """The likelihood of t linked symbols that all name the same value, for each value, if they are fake.

    A noisy fake is perturbed like a true value; a bare one is its own memo.
    """
    assert question.fake is not None, "a symbol has no zero vector"
    flip = odds.value if question.fake_kind == "noisy" else odds.memo
    return np.asarray(question.fake * flip.gain + flip.q)


def _possible_bit_pairs(question: Question, t: float) -> Floats:
    odds = bit_odds(question.mechanism, t)
    if question.fake is None:
        return np.array(list(product((odds.up, odds.down), repeat=2)))
    v, other = np.array([0, 1, question.k - 2, question.k - 1])[CASES[:2]]
    first, second, rest = np.array([odds.up, odds.down])[CASES[2:]]
    shares, apart = np.sort(question.fake), v != other
    mine, theirs = shares[v], shares[other] * apart
    fake = mine * first + theirs * second + (1 - mine - theirs) * rest
    return np.asarray(np.stack([first / fake, second / fake], axis=1)[apart | (first == second)])


def log_extremes(question: Question, t: float) -> tuple[float, float]:
    """ln of the largest and the smallest L(y|v) of an attribute after t linked reports.

    The largest is at the answer that names the value which is the rarest fake; the smallest at the one that names the
    most common fake (a symbol), or everything but the value which is the rarest fake (bits).
    """
    fake = question.fake
    if not isinstance(question.mechanism.encoding.memo, PackedBits):
        odds = symbol_odds(question.mechanism, t)
        shares = _fake_symbols(question, odds)
        return log(odds.value.p / shares.min()), log(odds.value.q / shares.max())
    bits = bit_odds(question.mechanism, t)
    if fake is None:
        return log(bits.up), log(bits.down)
    rare = fake.min()
    return -log(rare + (1 - rare) * bits.down / bits.up), -log(rare + (1 - rare) * bits.up / bits.down)


def tuple_loss(questions: Sequence[Question], t: float, fresh: bool) -> float:
    """The largest log-ratio between two whole tuples after t linked reports.

    Dinkelbach's iteration: at rate r each attribute picks the pair with the largest first - r second; the picks'
    ratio is the next rate. It rises until it is the maximum, after a handful of steps. Fresh draws (no memo) cost the
    same for every attribute, and then the common ratio is the maximum.
    """
    if fresh:
        return t * max(loss(question.mechanism) for question in questions)
    choices = [possible_pairs(question, t) for question in questions]
    rate = 1.0
    while True:
        picks = [pairs[(pairs[:, 0] - rate * pairs[:, 1]).argmax()] for pairs in choices]
        first, second = np.sum(picks, axis=0)
        better = float(first / second)
        if better <= rate * (1 + 1e-15):
            return log(rate)
        rate = better


def attribute_losses(questions: Sequence[Question], t: float, fresh: bool, values: Sequence[int] = ()) -> list[float]:
    """For each attribute the largest log-ratio between two tuples that differ only there, after t linked reports.

    `values`: how many values of each attribute were memoised (by default 1). For more than one the figure is exact
    for uniform and zero fakes; under a prior it is an upper bound, because distinct values cannot all be the rarest.
    """
    counts = list(values) or [1] * len(questions)
    reports, repeats = (1.0, t) if fresh else (t, 1.0)
    highs, lows, losses = [], [], []
    for question, count in zip(questions, counts, strict=True):
        high, low = log_extremes(question, reports)
        highs.append(high * count * repeats)
        lows.append(low * count * repeats)
        losses.append(loss(question.mechanism, reports) * count * repeats)
    rests = [_log_sum(lows[:i] + lows[i + 1 :]) for i in range(len(lows))]
    return [float(np.logaddexp(high, rest) - np.logaddexp(high - spent, rest))
            for high, spent, rest in zip(highs, losses, rests, strict=True)]  # fmt: skip


def _log_sum(logs: list[float]) -> float:
    top = max(logs, default=-inf)
    return top + log(sum(exp(x - top) for x in logs)) if logs else -inf


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
    from scipy.optimize import brentq  # takes over a second to import

    forever, one = declared

    def lost(budgets: Budgets) -> float:
        return max(attribute_losses(ask(budgets), 1, fresh=False))

    high = 2 * forever
    while lost((high, None)) < forever:
        high *= 2
    root = partial(brentq, xtol=1e-16, rtol=1e-15)
    spent = round_down(root(lambda e: lost((e, None)) - forever, forever, high))
    return spent, None if one is None else round_down(root(lambda e: lost((spent, e)) - one, one / 2, spent))
