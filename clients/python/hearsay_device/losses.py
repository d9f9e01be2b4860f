"""What terms reveal, computed from the probabilities that their tables follow from (docs/device-protocol.md, "Losses").

Every figure is exact or too large, never too small, up to the 2^-64 to which tables are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, inf, log, log2
from operator import mul
from typing import NamedTuple

from hearsay_device.encodings import Flip, Matrix, Move, most_digits
from hearsay_device.errors import refuse
from hearsay_device.tables import by_distance
from hearsay_device.terms import Question, Terms

ROUNDING = 2**-62  # what two cuts may add to or take from a probability
NEAR = 500.0  # metres: what a question about places tells is counted for two positions so far apart
HARMLESS_BITS, SPARE_BITS = 1.0, 10.0
_SENT = Flip(1.0, 0.0)  # a second round that changes nothing: the memo itself is sent


class Loss(NamedTuple):
    """`whole` between any two values, `unit` between neighbours of an ordered domain, or for a cell side."""

    whole: float
    unit: float


@lru_cache(maxsize=256)
def loss(question: Question, t: float) -> Loss:
    """After t linked answers from one memo: 1, or infinity for all that there can ever be."""
    first, second = question.first, question.second
    if isinstance(first, Matrix):
        return _matrix_loss(first, second if t == 1 and isinstance(second, Matrix) else None)
    if isinstance(first, Move):
        rate = min(first.rate, second.rate) if t == 1 and isinstance(second, Move) else first.rate
        grid = question.sources[0].grid
        assert grid is not None
        return Loss(rate * grid.apart(NEAR), rate)
    drawn = _normalised(question, second) if isinstance(second, Flip) else _SENT
    ones = _normalised(question, first).then(Flip(1.0, (drawn.q / drawn.p) ** t))
    whole = log(ones.p / ones.q)
    if question.bits:
        zeros = first.then(Flip(((1 - drawn.p) / (1 - drawn.q)) ** t, 1.0))
        contradicted = -log(zeros.p / zeros.q)
        whole = max(whole, contradicted) if question.size == 1 else whole + contradicted
    return Loss(whole, whole)


def cost(question: Question, count: int) -> float:
    """All memos of `count` cells, between histories that are the same up to renaming the cells (PROTOCOLS 3 and 5)."""
    ever = loss(question, inf)
    if isinstance(question.first, Matrix):
        places = [place // 2 for place in range(2 * question.k)]  # each value once in either history
        return ever.unit * (sum(places[len(places) - count :]) - sum(places[:count]))
    if question.kind == "buckets" and question.parameter < question.k and isinstance(question.first, Flip):
        p, q = question.first.p, question.first.q
        return min(count, question.parameter) * log(p * (1 - q) / (q * (1 - p)))
    return count * ever.whole


def link(question: Question) -> float:
    """What one more answer tells whoever knows that it is the same device's, whatever its history."""
    second = question.second
    if second is None:
        return inf
    if isinstance(second, Matrix):
        return _matrix_loss(second, None).whole
    if isinstance(second, Move):
        grid = question.sources[0].grid
        assert grid is not None
        return second.rate * grid.widest
    drawn = _normalised(question, second)
    named = log(drawn.p / drawn.q)
    return question.size * max(named, log((1 - drawn.q) / (1 - drawn.p))) if question.bits else named


def report_loss(terms: Terms) -> float:
    """One report, between any two histories."""
    return _over(terms, [loss(question, 1).whole for question in terms.questions])


def require_within_budgets(terms: Terms) -> None:
    """Refuse terms whose numbers reveal more than the budgets that they declare."""
    flips = [question for question in terms.questions if not isinstance(question.first, Move)]
    fits = all(
        _over(terms, [loss(question, t).unit for question in flips]) <= budget * (1 + 1e-9)
        for t, budget in zip((1, inf), terms.budgets or ())
    )
    for question in terms.questions:
        one, ever = question.sources[0].rates
        if isinstance(question.first, Move):
            fits = fits and question.first.rate <= (ever or one or 0.0) * (1 + 1e-9)
    if not fits:
        refuse("losses", f"survey {terms.id!r}: its numbers reveal more than it declares", "do not answer it")


def shared_bits(one: Question, other: Question) -> float:
    """What two answers to a question that two surveys share have in common, in bits; never too few (PROTOCOLS 9)."""
    m, a, b = one.size, one.second, other.second
    traits = 0.0
    if one.kind == "hashed":
        traits = most_digits(one.parameter) * log2(one.parameter)
    if one.kind == "buckets":
        traits = log2(comb(one.k, one.parameter))
    if one.fakes is not None or not (isinstance(one.first, Flip) and isinstance(a, Flip) and isinstance(b, Flip)):
        return traits + (m if one.bits else log2(m))  # no more than the memo has
    if not one.bits:
        apart = a.q * b.q + (a.q * (b.p - b.q) + b.q * (a.p - a.q)) / m
        same = apart + (a.p - a.q) * (b.p - b.q) / m
        return traits + m * same * log2(m * m * same) + m * (m - 1) * apart * log2(m * m * apart)
    ones = one.first.q + (one.first.p - one.first.q) / one.k
    found = 0.0
    for x, y in ((0, 0), (0, 1), (1, 0), (1, 1)):
        both = ones * _chance(a.p, x) * _chance(b.p, y) + (1 - ones) * _chance(a.q, x) * _chance(b.q, y)
        alone = _chance(ones * a.p + (1 - ones) * a.q, x) * _chance(ones * b.p + (1 - ones) * b.q, y)
        found += both * log2(both / alone)
    return traits + m * found


def hidden_bits(devices: int | None) -> float:
    """How many bits a crowd of so many devices hides."""
    return HARMLESS_BITS if devices is None else max(HARMLESS_BITS, log2(devices) - SPARE_BITS)


def _chance(one: float, said: int) -> float:
    return one if said else 1 - one


def _over(terms: Terms, losses: Sequence[float]) -> float:
    """Losses of attributes that are all answered add up; of a sampled one the largest counts."""
    return sum(losses) if terms.solution == "spl" else max(losses, default=0.0)


def _normalised(question: Question, flip: Flip) -> Flip:
    """A table draws shares of the sum of what it is given."""
    total = 1.0 if question.bits else flip.p + (question.size - 1) * flip.q
    return Flip(flip.p / total, flip.q / total)


@lru_cache(maxsize=64)
def _matrix_loss(first: Matrix, second: Matrix | None) -> Loss:
    """Neighbours' losses add up to a bound for any two values, which geometric noise attains."""
    matrix = _rows_of(first)
    if second is not None:
        columns = list(zip(*_rows_of(second)))
        matrix = [[sum(map(mul, row, column)) for column in columns] for row in matrix]
    rising = [_steepest(other, row) for row, other in zip(matrix, matrix[1:])]
    falling = [_steepest(row, other) for row, other in zip(matrix, matrix[1:])]
    return Loss(max(sum(rising), sum(falling)), max(*rising, *falling))


def _rows_of(matrix: Matrix) -> list[list[float]]:
    rows = [by_distance(i, matrix.ends, matrix.inside) for i in range(len(matrix.ends))]
    return [[each / total for each in row] for row, total in zip(rows, map(sum, rows))]


def _steepest(row: Sequence[float], other: Sequence[float]) -> float:
    """The largest log-ratio of two rows, apart from what never occurs."""
    ratios = (log((one - ROUNDING) / (two + ROUNDING)) for one, two in zip(row, other) if one > 2 * ROUNDING)
    return max(ratios, default=0.0)
