"""What terms reveal, computed from the probabilities that their tables follow from (docs/device-protocol.md, "Losses").

Every figure is exact or too large, never too small, up to the 2^-64 to which tables are exact.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import comb, inf, log, log2
from operator import mul

from hearsay_device.errors import refuse
from hearsay_device.questions import Question
from hearsay_device.rounds import Flip, Matrix
from hearsay_device.terms import Terms

SLACK = 1 + 1e-9
ROUNDING = 2**-62  # what two cuts may add to or take from a probability
NEAR = 500.0  # metres: what a question about places tells is counted for two positions so far apart


def loss(question: Question, t: float) -> float:
    """Between any two values, after t linked answers from one memo: 1, or infinity for all that there can ever be."""
    first, second, grid = question.first, question.second, question.grid
    if question.ordered:
        return max(map(sum, _steps(first, second if t == 1 else None)))
    if question.kind == "plane" and grid is not None:
        rate = min(first.rate, second.rate) if t == 1 and second is not None else first.rate
        return float(rate * grid.apart(NEAR))
    p1, q1 = first.drawn
    p2, q2 = (1.0, 0.0) if second is None else second.drawn  # 1 and 0: the memo itself is sent
    r, s = (q2 / p2) ** t, ((1 - p2) / (1 - q2)) ** t
    named = log((p1 * (1 - r) + r) / (q1 * (1 - r) + r))
    if not question.bits:
        return named
    contradicted = -log((p1 * (s - 1) + 1) / (q1 * (s - 1) + 1))
    return max(named, contradicted) if question.size == 1 else named + contradicted


def declared_loss(question: Question, t: float) -> float:
    """What budgets are about: the same, but of ordered values the largest between neighbours."""
    if question.ordered:
        return max(map(max, _steps(question.first, question.second if t == 1 else None)))
    return loss(question, t)


def cost(question: Question, count: int) -> float:
    """All memos of `count` cells, between histories that are the same up to renaming the cells (PROTOCOLS 3 and 5)."""
    if question.ordered:
        places = [place // 2 for place in range(2 * question.k)]  # each value once in either history
        return declared_loss(question, inf) * (sum(places[len(places) - count :]) - sum(places[:count]))
    if question.kind == "buckets" and question.size < question.k:
        p, q = question.first.drawn
        return min(count, question.size) * log(p * (1 - q) / (q * (1 - p)))
    return count * loss(question, inf)


def link(question: Question) -> float:
    """What one more answer tells whoever knows that it is the same device's, whatever its history."""
    second, grid = question.second, question.grid
    if second is None:
        return inf
    if question.ordered:
        return max(map(sum, _steps(second, None)))
    if question.kind == "plane" and grid is not None:
        return float(second.rate * grid.widest)
    p, q = second.drawn
    return question.size * max(log(p / q), log((1 - q) / (1 - p))) if question.bits else log(p / q)


def report_loss(terms: Terms) -> float:
    """One report, between any two histories. Losses of attributes that are all answered add up."""
    losses = [loss(question, 1) for question in terms.questions]
    return sum(losses) if terms.solution == "spl" else max(losses)


def require_within_budgets(terms: Terms) -> None:
    """Refuse terms whose numbers reveal more than the budgets that they declare."""
    fits = []
    for question in terms.questions:
        one, ever = question.sources[0].rates
        fits.append(question.kind != "plane" or question.first.rate <= (ever or one or 0.0) * SLACK)
    for t, budget in zip((1, inf), terms.budgets or ()):
        losses = [declared_loss(question, t) for question in terms.questions if question.kind != "plane"]
        fits.append((sum if terms.solution == "spl" else max)(losses) <= budget * SLACK)
    if not all(fits):
        refuse("losses", f"survey {terms.id!r}: its numbers reveal more than it declares", "do not answer it")


def shared_bits(one: Question, other: Question) -> float:
    """What two answers to a question that two surveys share have in common, in bits; never too few (PROTOCOLS 9)."""
    m, a, b = one.size, one.second, other.second
    traits = log2(comb(one.k, m)) if one.kind == "buckets" else log2(one.hashes)
    if one.fakes is not None or not (isinstance(a, Flip) and isinstance(b, Flip)):
        return traits + (m if one.bits else log2(m))  # no more than the memo has
    if not one.bits:
        apart = a.q * b.q + (a.q * (b.p - b.q) + b.q * (a.p - a.q)) / m
        same = apart + (a.p - a.q) * (b.p - b.q) / m
        return float(traits + m * same * log2(m * m * same) + m * (m - 1) * apart * log2(m * m * apart))
    ones = one.first.q + (one.first.p - one.first.q) / one.k
    said = [((each.p, each.q), (1 - each.p, 1 - each.q)) for each in (a, b)]  # 1 and 0, of a bit set in the memo or not
    common = 0.0
    for (p, q), (r, s) in product(*said):
        both = ones * p * r + (1 - ones) * q * s
        common += both * log2(both / (ones * p + (1 - ones) * q) / (ones * r + (1 - ones) * s))
    return traits + m * common


@lru_cache(maxsize=64)
def _steps(first: Matrix, second: Matrix | None) -> list[list[float]]:
    """The largest log-ratio of each two neighbours, upwards and downwards.

    They add up to a bound for any two values, which geometric noise attains.
    """
    rounds = []
    for each in [first] if second is None else [first, second]:
        rows = [each.row(symbol, each.numbers) for symbol in range(each.size)]
        rounds.append([[entry / total for entry in row] for row, total in zip(rows, map(sum, rows))])
    matrix = rounds[0]
    if second is not None:
        columns = list(zip(*rounds[1]))
        matrix = [[sum(map(mul, row, column)) for column in columns] for row in matrix]
    ways = []
    for pairs in (zip(matrix, matrix[1:]), zip(matrix[1:], matrix)):
        ratios = [[(a - ROUNDING) / (b + ROUNDING) for a, b in zip(*rows) if a > 2 * ROUNDING] for rows in pairs]
        ways.append([log(max(each, default=1.0)) for each in ratios])
    return ways
