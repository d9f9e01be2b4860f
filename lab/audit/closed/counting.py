"""Guesses from t linked symbols by going through all counts of symbols that t reports can have.

Given the memo, the order of t reports says nothing: how often each symbol was named is all that there is to see. So the
accuracy of the best guess is a sum over all such counts, exact for any shares of values and for any noise, as long as
there are not too many of them.
"""

from __future__ import annotations

from itertools import chain, combinations
from math import comb

import numpy as np

from protocols.arrays import Floats, Whole
from protocols.mechanisms import Flip, MatrixRound
from protocols.question import Question

MOST_COUNTS = 100_000


def guess_by_counts(question: Question, t: int, prior: Floats) -> float | None:
    """The accuracy of the best guess of a value from t linked reports; None if there are too many possible counts.

    >>> from protocols.scheme import Scheme
    >>> from protocols.survey_text import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1,
    ...  attributes: [{name: few, range: {last: 4}, mechanism: l-geometric}]}'''))
    >>> [round(guess_by_counts(scheme.questions[0], t, np.full(5, 0.2)), 3) for t in (1, 2, 10)]
    [0.51, 0.518, 0.745]
    """
    encoding, mechanism = question.mechanism.encoding, question.mechanism
    size = encoding.memo.count
    if mechanism.second is None or comb(t + size - 1, size - 1) > MOST_COUNTS:
        return None
    first, second = noise_matrix(mechanism.first, size), noise_matrix(mechanism.second, size)
    if question.faked:
        first = question.share * first + (1 - question.share) * np.asarray(question.fake_memo)
    likelihoods = chances(counts_of(t, size), second) @ first.T  # [counts, cell]
    rows, times = np.unique(best_by_cell(encoding.sent, size, prior), axis=0, return_counts=True)
    return float(np.average([(likelihoods * row).max(axis=1).sum() for row in rows], weights=times))


def best_by_cell(sent: Whole, size: int, prior: Floats) -> Floats:
    """For each trait, a row each, the largest share of a value that it sends to each cell."""
    return np.array([[prior[row == cell].max(initial=0.0) for cell in range(size)] for row in sent])


def counts_of(t: int, size: int) -> Whole:
    """All ways in which t reports can name `size` symbols, a row each.

    >>> counts_of(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    places = chain.from_iterable(combinations(range(t + size - 1), size - 1))
    bars = np.fromiter(places, dtype=np.int64).reshape(-1, size - 1)
    ends = np.full((len(bars), 1), t + size - 1)
    return np.diff(np.concatenate([np.full_like(ends, -1), bars, ends], axis=1), axis=1) - 1


def chances(counts: Whole, noise: Floats) -> Floats:
    """The chance of each row of counts, by the memo."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, counts[0].sum() + 1)))])
    orders = factorials[-1] - factorials[counts].sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(noise)
        powers = np.stack([np.where(counts > 0, counts * row, 0.0).sum(axis=1) for row in logs], axis=1)
    return np.asarray(np.exp(orders[:, None] + powers))


def noise_matrix(noise: Flip | MatrixRound, size: int) -> Floats:
    return noise.matrix if isinstance(noise, MatrixRound) else noise.q + noise.gain * np.eye(size)
