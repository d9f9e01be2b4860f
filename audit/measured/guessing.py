"""Guesses of values and of the true attribute, carried out (docs/audit.md, sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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
    rows = observed.steady(question.name, periods)
    return Trials(float(_credits(observed, question, rows, periods, prior).sum()), len(rows))


def tuple_trials(observed: Observed, periods: range, priors: Mapping[str, Floats]) -> Trials:
    """Guess all values of every device at once; attributes that it does not answer, by their shares."""
    questions = observed.scheme.questions
    there = observed.present[periods.start : periods.stop].all(axis=0)
    for question in questions:
        values = observed.values[question.name][periods.start : periods.stop]
        there &= (values == values[0]).all(axis=0)
    rows = np.flatnonzero(there)
    right = np.ones(len(rows))
    for question in questions:
        answering = observed.answering(question.name)[rows]
        prior = priors.get(question.name)
        right[answering] *= _credits(observed, question, rows[answering], periods, prior)
        if not answering.all():
            blind = np.full(question.k, 1 / question.k) if prior is None else prior
            top = blind >= blind.max() - SAME
            truth = observed.values[question.name][periods.start][rows[~answering]]
            right[~answering] *= top[truth] / top.sum()
    return Trials(float(right.sum()), len(rows))


def _credits(observed: Observed, question: Question, rows: Places, periods: range, prior: Floats | None) -> Floats:
    """For each device, whether the best guess of its value is right; ties are shared."""
    shares = np.zeros(question.k) if prior is None else np.log(np.maximum(prior, 1e-300))
    truth = observed.values[question.name][periods.start]
    parts = [
        credits(seen.answer(question.share) + shares, truth[some])
        for some, seen in likelihoods(observed, question, rows, periods)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


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
    for some in _chunks(rows, question.k) if size is None else [rows]:
        yield some, likelihood(observed, question, some, periods)


def likelihood(
    observed: Observed, question: Question, rows: Places, periods: Iterable[int], absolute: bool = False
) -> Linked:
    """The likelihoods of some devices' reports of these periods; a report that answers nothing says nothing."""
    answers, traits = observed.answers[question.name], observed.traits_of(question.name, rows)
    if not observed.scheme.takes_turns:
        reports = [answers[period][rows] for period in periods]
        return linked(question, reports, traits, observed.scheme.survey.longitudinal, absolute)
    values, fake = np.zeros((len(rows), question.k)), np.zeros(len(rows))
    for period in periods:
        there = np.flatnonzero(observed.answered[period][rows])
        seen = linked(question, [answers[period][rows[there]]], None, memoised=False, absolute=absolute)
        values[there] += seen.values
        fake[there] += 0.0 if seen.fake is None else seen.fake
    return Linked(values, fake if question.faked else None)


def _chunks(rows: Places, width: int) -> Iterator[Places]:
    size = max(1, CELLS // width)
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def best_guesses(scores: Floats, truth: Whole) -> Trials:
    """How often the highest score of a row is the true one's.

    >>> best_guesses(np.array([[1.0, 0.0], [2.0, 2.0], [0.0, 3.0]]), np.array([0, 0, 0]))
    Trials(right=1.5, count=3)
    """
    return Trials(float(credits(scores, truth).sum()), len(scores))


def credits(scores: Floats, truth: Whole) -> Floats:
    """For each row, 1 if its highest score is the true one's, a part if several are as high, else 0."""
    top = scores >= scores.max(axis=1, keepdims=True) - SAME
    return np.asarray(top[np.arange(len(scores)), truth] / top.sum(axis=1))


def shares_of(observed: Observed, name: str, k: int) -> Floats:
    """How values are really spread, in the first period."""
    counts = np.bincount(observed.values[name][0][observed.present[0]], minlength=k)
    return np.asarray(counts / max(1, counts.sum()))
