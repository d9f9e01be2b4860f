"""Guesses of values and of the true attribute, carried out (docs/audit.md, sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from audit.intervals import Trials
from audit.likelihoods.linked import Linked, linked
from audit.measured.observed import Observed
from protocols.arrays import Floats, Places, Whole
from protocols.question import Question

CELLS = 1 << 21  # likelihoods at once: bounds the memory
SAME = 1e-9  # scores that differ by less are equal


def guess_trials(observed: Observed, question: Question, periods: range, prior: Floats | None = None) -> Trials:
    """Guess the value of every device that reports in all these periods and keeps its value; ties are shared."""
    shares = np.zeros(question.k) if prior is None else np.log(np.maximum(prior, 1e-300))
    truth = observed.values[question.name][periods.start]
    total = Trials()
    for rows, seen in likelihoods(observed, question, observed.steady(question.name, periods), periods):
        total += best_guesses(seen.answer(question.share) + shares, truth[rows])
    return total


def which_trials(observed: Observed, spread: Mapping[str, Floats], periods: range) -> Trials:
    """Guess which attribute of every device is true, with values that are thought to be spread like this."""
    assert observed.sampled is not None, "all attributes are true"
    questions = observed.scheme.questions
    rows = np.flatnonzero(observed.present[periods.start : periods.stop].all(axis=0))
    widest = max(question.k for question in questions)
    total = Trials()
    for some in _chunks(rows, widest * len(questions)):
        scores = np.empty((len(some), len(questions)))
        for place, question in enumerate(questions):
            ((_, seen),) = likelihoods(observed, question, some, periods, len(some))
            scores[:, place] = seen.true_to_fake(spread[question.name])
        total += best_guesses(scores, observed.sampled[some])
    return total


def likelihoods(
    observed: Observed, question: Question, rows: Places, periods: range, size: int | None = None
) -> Iterator[tuple[Places, Linked]]:
    """The likelihoods of some devices' reports of these periods, a few devices at a time."""
    memoised = observed.scheme.survey.longitudinal
    for some in _chunks(rows, question.k) if size is None else [rows]:
        reports = observed.reports(question.name, some, periods)
        yield some, linked(question, reports, observed.traits_of(question.name, some), memoised)


def _chunks(rows: Places, width: int) -> Iterator[Places]:
    size = max(1, CELLS // width)
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def best_guesses(scores: Floats, truth: Whole) -> Trials:
    """How often the highest score of a row is the true one's.

    >>> best_guesses(np.array([[1.0, 0.0], [2.0, 2.0], [0.0, 3.0]]), np.array([0, 0, 0]))
    Trials(right=1.5, count=3)
    """
    top = scores >= scores.max(axis=1, keepdims=True) - SAME
    right = top[np.arange(len(scores)), truth] / top.sum(axis=1)
    return Trials(float(right.sum()), len(scores))


def shares_of(observed: Observed, name: str, k: int) -> Floats:
    """How values are really spread, in the first period."""
    counts = np.bincount(observed.values[name][0][observed.present[0]], minlength=k)
    return np.asarray(counts / max(1, counts.sum()))
