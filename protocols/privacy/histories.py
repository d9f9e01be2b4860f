"""What linked reports reveal about a history of values, between any two histories (docs/PROTOCOLS.md, section 3).

A stated loss holds between two histories that are related in one of three ways (`loss.Relation`):

    constant    the value never changes: t reports lose eps_t, at most eps_inf (`linked.loss`)
    renaming    both histories are the same up to an injective renaming of cells, so they change *and return* at the
                same times: each of c cells loses at most eps_inf (`linked.loss_of_values`)
    any         nothing is assumed: this module

For any two histories an observer may learn when a value changed and that it came back. Conditional on the memos, one
report loses at most what round 2 alone loses between any two memos, so t reports lose at most t times that. For few
reports the figure is computed exactly, by going through all histories. Where the memo itself is sent there is no bound:
a memo that changed is a change of the value, with certainty.

With a cap, a device holds its last memo for good from creating its cap-th one. With a cap of 1 its reports depend on
the first value alone, so any two histories are as far apart as two constant ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import product
from math import inf, log, prod

import numpy as np

from protocols.arrays.columns import PackedBits
from protocols.mechanisms.mechanism import Mechanism
from protocols.mechanisms.places.rounds import PlaceRound
from protocols.mechanisms.rounds import Flip, MatrixRound
from protocols.privacy.linked import loss

History = tuple[int, ...]  # a cell for each report
ENUMERATED = 3  # reports up to which all histories are gone through


def second_round_loss(mechanism: Mechanism) -> float:
    """The largest log-ratio of one report between any two memos: what a report loses whatever its history."""
    second = mechanism.second
    if second is None:
        return inf
    if isinstance(second, PlaceRound):
        return second.rate * second.area.widest
    if isinstance(second, MatrixRound):
        return float(np.ptp(second.logs[:, -1]))
    if not isinstance(mechanism.encoding.memo, PackedBits):
        return log(second.p / second.q)
    one_bit = max(log(second.p / second.q), log((1 - second.q) / (1 - second.p)))
    return mechanism.encoding.memo.count * one_bit


def any_loss(mechanism: Mechanism, t: int) -> tuple[float, bool]:
    """The largest log-ratio between any two histories of t linked reports, and whether that is exact (or a bound).

    >>> from protocols.mechanisms.catalogue import build
    >>> from protocols.mechanisms.mechanism import Budget
    >>> mechanism = build("l-grr", 3, Budget(1.0, 0.5))
    >>> [(round(figure, 3), exact) for figure, exact in (any_loss(mechanism, t) for t in (1, 2, 100))]
    [(0.5, True), (1.251, True), (135.113, False)]
    """
    if t == 1:
        return loss(mechanism, t), True
    if mechanism.second is None:
        return inf, True
    if t <= ENUMERATED and isinstance(mechanism.second, Flip) and isinstance(mechanism.first, Flip):
        flips = mechanism.first, mechanism.second
        states, memo = mechanism.encoding.states, mechanism.encoding.memo
        if isinstance(memo, PackedBits):
            return _enumerated_bits(*flips, memo.count, states, t), True
        # Where a device cannot be in every cell (fewer values than hashes), going through all cells is a bound.
        return _enumerated_symbols(*flips, memo.count, t), states == memo.count
    return t * second_round_loss(mechanism), False


def held(history: History, cap: int | None) -> History:
    """The cells whose memos a device with a cap really reports.

    >>> held((0, 1, 0, 2), cap=2), held((0, 1, 0, 2), cap=3)
    ((0, 1, 1, 1), (0, 1, 0, 2))
    """
    used: list[int] = []
    reported = []
    for cell in history:
        if cap is None or len(used) < cap:
            if cell not in used:
                used.append(cell)
            reported.append(cell)
        else:
            reported.append(used[-1])
    return tuple(reported)


@lru_cache(maxsize=4096)
def _enumerated_symbols(first: Flip, second: Flip, symbols: int, t: int) -> float:
    """Answers are symbols. Given the answers, the likeliest and the least likely history are chosen independently."""

    def likelihood(answers: History, history: History) -> float:
        chance = 1.0
        for cell in set(history):
            seen = [answer for answer, at in zip(answers, history, strict=True) if at == cell]
            named = {cell, *seen}
            chance *= (symbols - len(named)) * first.q * second.q ** len(seen) + sum(
                (first.p if memo == cell else first.q) * prod(second.p if one == memo else second.q for one in seen)
                for memo in named
            )
        return chance

    widest = 0.0
    for answers in _patterns(t, symbols):
        named = max(answers) + 1
        likelihoods = [likelihood(answers, history) for history in product(range(min(symbols, named + t)), repeat=t)]
        widest = max(widest, log(max(likelihoods) / min(likelihoods)))
    return widest


@lru_cache(maxsize=4096)
def _enumerated_bits(first: Flip, second: Flip, bits: int, states: int, t: int) -> float:
    """Answers are bits. Given both histories, every bit's answers are chosen independently."""
    answers = list(product((0, 1), repeat=t))

    @cache
    def likelihoods(history: History, bit: int) -> list[float]:
        return [
            prod(
                sum(
                    share * prod(_bit(second, memo, said) for said, at in zip(seen, history, strict=True) if at == cell)
                    for memo, share in _memo_bit(first, cell == bit)
                )
                for cell in set(history)
            )
            for seen in answers
        ]

    def widest(one: History, other: History) -> float:
        named = {cell for cell in (*one, *other) if cell < bits}
        unnamed = bits - len(named)
        total = sum(_log_ratio(likelihoods(one, bit), likelihoods(other, bit)) for bit in named)
        return total + (unnamed * _log_ratio(likelihoods(one, -1), likelihoods(other, -1)) if unnamed else 0.0)

    return max(
        widest(one, other)
        for one in _patterns(t, states)
        for other in product(range(min(states, max(one) + 1 + t)), repeat=t)
    )


def _memo_bit(first: Flip, own: bool) -> tuple[tuple[int, float], tuple[int, float]]:
    set_ = first.p if own else first.q
    return (1, set_), (0, 1 - set_)


def _bit(second: Flip, memo: int, said: int) -> float:
    one = second.p if memo else second.q
    return one if said else 1 - one


def _log_ratio(one: list[float], other: list[float]) -> float:
    return max(log(a / b) for a, b in zip(one, other, strict=True))


def _patterns(t: int, most: int) -> Iterator[History]:
    """All sequences of t labels up to renaming, of at most `most` different ones: labels appear in order."""

    def extend(start: History) -> Iterator[History]:
        if len(start) == t:
            yield start
            return
        for label in range(min(max(start, default=-1) + 2, most)):
            yield from extend((*start, label))

    return extend(())
