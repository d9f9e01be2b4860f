"""Guesses of values and of the true attribute, carried out (docs/audit.md, sections 2 and 3).

Who knows what published attackers know learns how true and fake answers are spread, where the best attacker computes
it, and guesses the others' attribute from one report by the ratio of both:

    partial knowledge    two histograms of each attribute, with one added to every count; of bits one for each bit
    hybrid               the same, on top of what the survey's own estimate says, with as much weight
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lab.attacks.accuracy import SAME
from lab.attacks.likelihoods import NEVER, Linked, chunks, linked
from lab.attacks.observed import Observed
from lab.attacks.report import Trials
from protocols.arrays import Column, Floats, PackedBits, Places, Whole
from protocols.mechanisms import Flip
from protocols.question import Question

KNOWN = 0.1  # the share of devices whose attribute the attacker knows
KINDS = {
    "partial": f"{KNOWN:.0%} of the devices (same knowledge, best use of it)",
    "hybrid": "estimates and devices (same knowledge, best use of it)",
}


def guess_trials(
    observed: Observed, targets: Sequence[Question], periods: range, priors: Mapping[str, Floats]
) -> Trials:
    """Guess the value of every device that answers, or all values of every device; ties are shared.

    Devices report in all these periods and keep their values. Attributes that one does not answer are guessed by their
    shares.
    """
    steady = observed.there(periods) & np.all([observed.kept(question.name, periods) for question in targets], axis=0)
    rows = np.flatnonzero(steady & (observed.answering(targets[0].name) if len(targets) == 1 else True))
    right = np.ones(len(rows))
    for question in targets:
        truth, prior = observed.values[question.name][periods.start][rows], priors.get(question.name)
        shares = np.zeros(question.listed.k) if prior is None else np.log(np.maximum(prior, NEVER))
        answering = observed.answering(question.name)[rows]
        for some in chunks(np.flatnonzero(answering), question.listed.k):
            seen = likelihood(observed, question, rows[some], periods)
            right[some] *= credits(seen.answer(question.share) + shares, truth[some])
        if not answering.all():
            right[~answering] *= credits(np.tile(shares, ((~answering).sum(), 1)), truth[~answering])
    return Trials(float(right.sum()), len(rows))


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
    answers, traits = observed.answers[question.name], observed.traits[question.name]
    traits = None if traits is None else traits[rows]
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
    rows, scores = np.flatnonzero(observed.answered[0]), dict[str, list[Floats]]()
    known = np.random.default_rng(0).random(len(rows)) < KNOWN
    learnt, rest = rows[known], rows[~known]
    for place, question in enumerate(observed.scheme.questions):
        true, hints = observed.sampled[learnt] == place, _hints(question, estimates[question.name])
        bits, seen = (_bits(question, observed.answers[question.name][0][some]) for some in (learnt, rest))
        for kind, weight in (("partial", 0), ("hybrid", len(learnt))):
            likely, fake = (
                _learnt(question, bits[which], weight * hint, weight)
                for which, hint in zip((true, ~true), hints, strict=True)
            )
            ones, zeros = np.log(likely / fake), np.zeros(question.k)
            if not question.mechanism.encoding.exclusive:
                zeros = np.log((1 - likely) / (1 - fake))
            scores.setdefault(kind, []).append(seen @ (ones - zeros) + zeros.sum())
    return {kind: best_guesses(np.stack(found, axis=1), observed.sampled[rest]) for kind, found in scores.items()}


def _bits(question: Question, answers: Column) -> Floats:
    """Answers as bits; of a symbol, the one that it names is set."""
    layout = question.mechanism.encoding.answer
    bits = layout.unpack(answers) if isinstance(layout, PackedBits) else answers[:, None] == np.arange(question.k)
    return bits.astype(np.float64)


def _hints(question: Question, shares: Floats) -> tuple[Floats, Floats]:
    """How often each symbol or bit is in true and in fake answers, if values are spread like the estimate."""
    noise = question.mechanism.one_report
    assert isinstance(noise, Flip)
    true = shares * noise.gain + noise.q
    if question.mechanism.encoding.exclusive:
        return true, np.asarray(question.fake_answer)
    fakes = np.zeros(question.k) if question.fake is None else question.fake
    return true, fakes * noise.gain + noise.q


def _learnt(question: Question, bits: Floats, hints: Floats, weight: int) -> Floats:
    """The chance of each symbol, or of each bit, from known devices, or on top of hints with this weight."""
    added, cells = (0, 0) if weight else (1, question.k if question.mechanism.encoding.exclusive else 2)
    return np.asarray((bits.sum(axis=0) + hints + added) / (len(bits) + weight + cells))
