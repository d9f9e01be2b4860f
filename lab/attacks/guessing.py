"""Guesses of values and of the true attribute, carried out (docs/audit.md, sections 2 and 3).

Published attackers look for the true attribute with devices whose attribute they know, and train classifiers on these.
Ours know the same and use it best: they learn how true and fake answers are spread, where the best attacker computes
it, and guess the others' attribute from one report by the ratio of both:

    partial knowledge    two histograms of each attribute, with one added to every count; of bits one for each bit
    hybrid               the same, on top of what the survey's own estimate says, with as much weight
"""

from collections.abc import Iterable, Mapping

import numpy as np

from lab.attacks.likelihoods import Linked, chunks, linked
from lab.attacks.observed import Observed
from lab.attacks.trials import Trials
from lab.audit.closed.guessing import SAME
from protocols.arrays import Column, Floats, PackedBits, Places, Whole
from protocols.mechanisms import Flip
from protocols.question import Question

KNOWN = 0.1  # the share of devices whose attribute the attacker knows
KINDS = {
    "partial": f"{KNOWN:.0%} of the devices (same knowledge, best use of it)",
    "hybrid": "estimates and devices (same knowledge, best use of it)",
}


def guess_trials(observed: Observed, question: Question, periods: range, prior: Floats | None = None) -> Trials:
    """Guess the value of every device that reports in all these periods and keeps its value; ties are shared."""
    rows = observed.steady(question.name, periods)
    return Trials(float(_credits(observed, question, rows, periods, prior).sum()), len(rows))


def tuple_trials(observed: Observed, periods: range, priors: Mapping[str, Floats]) -> Trials:
    """Guess all values of every device at once; attributes that it does not answer, by their shares."""
    questions = observed.scheme.questions
    kept = [observed.kept(question.name, periods) for question in questions]
    rows = np.flatnonzero(observed.there(periods) & np.all(kept, axis=0))
    right = np.ones(len(rows))
    for question in questions:
        answering = observed.answering(question.name)[rows]
        prior = priors.get(question.name)
        right[answering] *= _credits(observed, question, rows[answering], periods, prior)
        if not answering.all():
            truth = observed.values[question.name][periods.start][rows[~answering]]
            blind = np.zeros(question.k) if prior is None else prior
            right[~answering] *= credits(np.tile(blind, (len(truth), 1)), truth)
    return Trials(float(right.sum()), len(rows))


def _credits(observed: Observed, question: Question, rows: Places, periods: range, prior: Floats | None) -> Floats:
    """For each device, whether the best guess of its value is right; ties are shared."""
    shares = 0.0 if prior is None else np.log(np.maximum(prior, 1e-300))
    truth = observed.values[question.name][periods.start]
    found = np.zeros(len(rows))
    for some in chunks(np.arange(len(rows)), question.listed.k):
        seen = likelihood(observed, question, rows[some], periods)
        found[some] = credits(seen.answer(question.share) + shares, truth[rows[some]])
    return found


def which_trials(observed: Observed, spread: Mapping[str, Floats], periods: range) -> Trials:
    """Guess which attribute of every device is true, with values that are thought to be spread like this."""
    assert observed.sampled is not None, "all attributes are true"
    questions = observed.scheme.questions
    rows = np.flatnonzero(observed.there(periods))
    total = Trials()
    for some in chunks(rows, max(question.k for question in questions) * len(questions)):
        seen = [likelihood(observed, q, some, periods).true_to_fake(spread[q.name]) for q in questions]
        total += best_guesses(np.stack(seen, axis=1), observed.sampled[some])
    return total


def likelihood(observed: Observed, question: Question, rows: Places, periods: Iterable[int]) -> Linked:
    """The likelihoods of some devices' reports of these periods; a report that answers nothing says nothing."""
    answers, traits = observed.answers[question.name], observed.traits_of(question.name, rows)
    if not observed.scheme.takes_turns:
        reports = [answers[period][rows] for period in periods]
        return linked(question, reports, traits, observed.scheme.survey.longitudinal)
    values, fake = np.zeros((len(rows), question.listed.k)), np.zeros(len(rows))
    for period in periods:
        there = np.flatnonzero(observed.answered[period][rows])
        seen = linked(question, [answers[period][rows[there]]], None, memoised=False)
        values[there] += seen.values
        fake[there] += 0.0 if seen.fake is None else seen.fake
    return Linked(values, fake if question.faked else None)


def best_guesses(scores: Floats, truth: Whole) -> Trials:
    """How often the highest score of a row is the true one's.

    >>> best_guesses(np.array([[1.0, 0.0], [2.0, 2.0], [0.0, 3.0]]), np.array([0, 0, 0]))
    Trials(right=1.5, count=3)
    """
    return Trials(float(credits(scores, truth).sum()), len(scores))


def credits(scores: Floats, truth: Whole) -> Floats:
    """For each row, 1 if its highest score is the true one's, a part if several are as high, else 0.

    `truth` has the elements of each set, where values are sets.

    >>> credits(np.array([[1.0, 0.0, 1.0]]), np.array([[1, 2]])).tolist()
    [0.5]
    """
    top = scores >= scores.max(axis=1, keepdims=True) - SAME
    right = np.take_along_axis(top, truth.reshape(len(scores), -1).astype(np.int64), axis=1).sum(axis=1)
    return np.asarray(right / top.sum(axis=1))


def same_knowledge_trials(observed: Observed, estimates: Mapping[str, Floats]) -> dict[str, Trials]:
    """How often somebody is right who knows what each kind of published attacker knows."""
    assert observed.sampled is not None, "all attributes are true"
    rows, found = np.flatnonzero(observed.answered[0]), {}
    known = np.random.default_rng(0).random(len(rows)) < KNOWN
    learnt, rest = rows[known], rows[~known]
    for kind in KINDS:
        scores = []
        for place, question in enumerate(observed.scheme.questions):
            true = observed.sampled[learnt] == place
            hints = _hints(question, estimates[question.name]) if kind == "hybrid" else (None, None)
            answers = observed.answers[question.name][0]
            chances = [
                _learnt(question, answers[learnt[which]], hint, len(learnt))
                for which, hint in zip((true, ~true), hints, strict=True)
            ]
            scores.append(_ratio(question, answers[rest], *chances))
        found[kind] = best_guesses(np.stack(scores, axis=1), observed.sampled[rest])
    return found


def _hints(question: Question, shares: Floats) -> tuple[Floats, Floats]:
    """How often each symbol or bit is in true and in fake answers, if values are spread like the estimate."""
    noise = question.mechanism.one_report
    assert isinstance(noise, Flip)
    true = shares * noise.gain + noise.q
    if question.mechanism.encoding.exclusive:
        return true, np.asarray(question.fake_answer)
    fakes = np.zeros(question.k) if question.fake is None else question.fake
    return true, fakes * noise.gain + noise.q


def _learnt(question: Question, answers: Column, hint: Floats | None, weight: int) -> Floats:
    """The chance of each symbol, or of each bit, from answers of known devices."""
    layout, added = question.mechanism.encoding.answer, float(question.k)
    if isinstance(layout, PackedBits):
        counts, added = layout.unpack(answers).sum(axis=0).astype(float), 2.0
    else:
        counts = np.bincount(answers, minlength=question.k).astype(float)
    if hint is None:
        return np.asarray((counts + 1) / (len(answers) + added))
    return np.asarray((counts + weight * hint) / (len(answers) + weight))


def _ratio(question: Question, answers: Column, true: Floats, fake: Floats) -> Floats:
    layout = question.mechanism.encoding.answer
    if isinstance(layout, PackedBits):
        ones, zeros = np.log(true / fake), np.log((1 - true) / (1 - fake))
        return np.asarray(layout.unpack(answers).astype(float) @ (ones - zeros) + zeros.sum())
    return np.asarray(np.log(true / fake)[answers.astype(int)])
