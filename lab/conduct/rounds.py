"""The law of round 2: how often two reports differ that come from one memo.

Given a memo, reports are independent, so the number of changes from each report to the next has an exact law. It does
not depend on the value where noise treats all symbols or bits alike. Round 2 that is left out, or that repeats its
noise, makes too few changes; a memo that changes makes too many.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from lab.attacks.observed import Observed
from lab.conduct.answers import truths
from lab.conduct.levels import Law, smallest, sum_chance
from protocols.arrays import Column, Floats, PackedBits, Places, Whole
from protocols.mechanisms import Direct, Flip, Hashed, MatrixRound, Threshold, Unary, noise_matrix
from protocols.question import Question

KINDS = Direct | Unary | Hashed | Threshold
"""Encodings whose reports of one memo are compared."""


def has_law(question: Question) -> bool:
    """Whether reports of one memo are compared: they must have a second round."""
    second = question.mechanism.second
    return isinstance(question.mechanism.encoding, KINDS) and isinstance(second, Flip | MatrixRound)


def rounds_chances(question: Question, observed: Observed) -> tuple[float, float]:
    """The chances of luck of the oddest true value, over all reports, and of the oddest pair of periods.

    Of devices that answer in every period, with a value that never changes.
    """
    always = observed.answered.all(axis=0) & observed.answering(question.name)
    rows = np.flatnonzero(always & observed.kept(question.name, range(observed.periods)))
    if not len(rows):
        return 1.0, 1.0
    _, of_device = truths(question, observed.values[question.name][0][rows])
    first = np.array([np.flatnonzero(of_device == each)[0] for each in range(of_device.max() + 1)])
    places = _places(question, observed.values[question.name][0][rows[first]])
    seen = symbols(question, observed.answers[question.name][:, rows])
    devices = np.bincount(of_device)
    laws = [change_law(question, observed.periods, place) for place in places.tolist()]
    steps = np.zeros(len(rows), dtype=np.int64)
    for step in range(observed.periods - 1):
        steps += changes(seen[step], seen[step + 1])
    of_values = [
        sum_chance([Law(law, int(count))], int(steps[of_device == each].sum()))
        for each, (law, count) in enumerate(zip(laws, devices, strict=True))
    ]
    once = [
        Law(change_law(question, 2, place), int(count)) for place, count in zip(places.tolist(), devices, strict=True)
    ]
    of_pairs = [
        sum_chance(once, int(changes(seen[one], seen[other]).sum()))
        for one, other in combinations(range(observed.periods), 2)
    ]
    return smallest(np.array(of_values)), smallest(np.array(of_pairs))


def _places(question: Question, values: Whole) -> Places:
    """Where noise depends on the value, its place; otherwise any."""
    if isinstance(question.mechanism.second, MatrixRound):
        return np.asarray(values)
    return np.zeros(len(values), dtype=np.int64)


def symbols(question: Question, answers: Column) -> Column:
    """Answers as round 2 made them: without the trait, or as bits."""
    encoding = question.mechanism.encoding
    if isinstance(encoding.answer, PackedBits):
        shape = answers.shape[:-1]
        bits = encoding.answer.unpack(answers.reshape(-1, answers.shape[-1]))
        return np.asarray(bits).reshape(*shape, -1)
    if isinstance(encoding, Hashed):
        return np.asarray(answers % encoding.g)
    if isinstance(encoding, Threshold):
        return np.asarray(answers < encoding.several, dtype=np.uint8)
    return answers


def changes(one: Column, other: Column) -> Whole:
    """In how many symbols or bits the reports of each device differ."""
    return np.asarray((one != other).reshape(len(one), -1).sum(axis=1))


def change_law(question: Question, reports: int, place: int) -> Floats:
    """The chances of 0, 1 .. changes from each report of a memo to the next, for a value at this place."""
    first, second = question.mechanism.first, question.mechanism.second
    assert second is not None, "a memo that is sent as it is never changes"
    if isinstance(question.mechanism.encoding, Unary):
        assert isinstance(first, Flip)
        assert isinstance(second, Flip)
        own = _bit_law(first.p, second, reports)
        other = _bit_law(first.q, second, reports)
        true = _sum_of([own, *[other] * (question.k - 1)])
        fake = _sum_of([own if question.fake is not None else other, *[other] * (question.k - 1)])
        return np.asarray(question.share * true + (1 - question.share) * fake)
    size = question.mechanism.encoding.memo.count
    noise = noise_matrix(second, size)
    memos = np.eye(size)[0]
    if isinstance(second, MatrixRound):
        memos = noise_matrix(first, size)[place]
    laws = [symbol_law(row, reports) for row in noise[memos > 0]]
    return np.asarray(memos[memos > 0] @ np.array(laws))


def symbol_law(row: Floats, reports: int) -> Floats:
    """The chances of 0, 1 .. changes between neighbours of so many independent symbols.

    >>> symbol_law(np.array([0.9, 0.1]), 2).round(4).tolist()
    [0.82, 0.18]
    """
    chances = np.zeros((reports, len(row)))  # [changes, last symbol]
    chances[0] = row
    for _ in range(reports - 1):
        same = chances * row
        moved = (chances.sum(axis=1, keepdims=True) - chances) * row
        chances = same
        chances[1:] += moved[:-1]
    return np.asarray(chances.sum(axis=1))


def _bit_law(memo: float, second: Flip, reports: int) -> Floats:
    """The same of a bit that is set in a memo with this chance."""
    if_set = symbol_law(np.array([1 - second.p, second.p]), reports)
    if_not = symbol_law(np.array([1 - second.q, second.q]), reports)
    return np.asarray(memo * if_set + (1 - memo) * if_not)


def _sum_of(laws: Sequence[Floats]) -> Floats:
    """The law of a sum of independent numbers."""
    total = np.ones(1)
    for law in laws:
        total = np.convolve(total, law)
    return total
