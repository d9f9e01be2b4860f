"""Guesses of values and of the true attribute, carried out; and all that a population shows, block by block of devices.

Who knows what published attackers know (docs/audit.md, section 3) learns how true and fake answers are spread, where
the best attacker computes it, and guesses the others' attribute from one report by the ratio of both:

    partial knowledge    two histograms of each attribute, with one added to every count; of bits one for each bit
    hybrid               the same, on top of what the survey's own estimate says, with as much weight
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from analytics.estimation import norm_sub
from lab.attacks.accuracy import (
    SAME,
    Priors,
    attribute_inference,
    best_guess,
    guess_terms,
    guessed,
    number_guess,
    of_values,
    tuple_guess,
)
from lab.attacks.forging import estimated, forged_figures
from lab.attacks.likelihoods import NEVER, Linked, chunks, linked
from lab.attacks.linking import link_figures
from lab.attacks.observed import Observed
from lab.attacks.places import place_figures
from lab.attacks.report import Attack, Attacker, Figure, Trials
from protocols.arrays import Column, Floats, PackedBits, Places, Whole
from protocols.mechanisms import Flip, MatrixRound
from protocols.privacy import blind_guess
from protocols.question import Question
from protocols.scheme import Scheme

KNOWN = 0.1  # the share of devices whose attribute the attacker knows
KNOWS = {
    "knows": "the shares of all values",
    "estimates": "the survey's own estimates",
    "partial": f"{KNOWN:.0%} of the devices (same knowledge, best use of it)",
    "hybrid": "estimates and devices (same knowledge, best use of it)",
}


@dataclass
class Population:
    """Adds up what blocks of devices show. `priors`: the shares that the attacker knows; None: it estimates them."""

    scheme: Scheme
    only: Collection[Attack]
    priors: Priors | None
    alpha: float
    attacker: Attacker = "best"
    _devices: int = 0
    _guesses: defaultdict[tuple[int, int], Trials] = field(default_factory=lambda: defaultdict(Trials))
    _which: defaultdict[tuple[str, int], Trials] = field(default_factory=lambda: defaultdict(Trials))
    _once: list[Figure] = field(default_factory=list)
    _spread: dict[str, Floats] = field(default_factory=dict)
    _estimates: dict[str, Floats] = field(default_factory=dict)

    def add(self, observed: Observed) -> None:
        """One block of devices. Links and forgeries are measured in the first one."""
        self._spread = self._mixed(observed)
        if not self._devices:
            self._estimates = {q.name: _published(observed, q) for q in self.scheme.questions}
            if self.priors is None:
                self.priors = {q.name: self._estimates[q.name] for q in self.scheme.questions if of_values(q)}
            self._once += place_figures(observed) if "place" in self.only else ()
            self._once += link_figures(observed, self.alpha) if "link" in self.only else ()
            self._once += forged_figures(observed) if "forge" in self.only else ()
        self._devices += observed.devices
        for reports in sorted({1, observed.periods}):
            self._attack(observed, range(reports), self.priors or {})

    def figures(self) -> list[Figure]:
        """What all blocks together show."""
        guesses = [self._guessed(*key, trials) for key, trials in self._guesses.items()]
        which = [self._found(*key, trials) for key, trials in self._which.items()]
        return [*guesses, *which, *self._once]

    def _mixed(self, observed: Observed) -> dict[str, Floats]:
        """How values are spread in all blocks so far."""
        spread, weight = {}, observed.devices / (observed.devices + self._devices)
        for q in self.scheme.questions:
            there = observed.values[q.name][0][observed.present[0]]
            counts = np.bincount(there.ravel(), minlength=q.listed.k)
            before = (1 - weight) * self._spread[q.name] if self._devices else 0.0
            spread[q.name] = weight * (counts / max(1, len(there))) + before
        return spread

    def _attack(self, observed: Observed, periods: range, priors: Priors) -> None:
        questions, reports = self.scheme.questions, len(periods)
        for place, targets in enumerate(guessed(self.scheme) if "guess" in self.only else ()):
            self._guesses[place, reports] += guess_trials(observed, targets, periods, priors)
        if "which" in self.only and questions[0].faked:
            for what, spread in (("knows", self._spread), ("estimates", self._estimates)):
                self._which[what, reports] += which_trials(observed, spread, periods)
            if self.attacker == "published" and reports == 1:
                for kind, trials in same_knowledge_trials(observed, self._estimates).items():
                    self._which[kind, 1] += trials

    def _guessed(self, place: int, reports: int, trials: Trials) -> Figure:
        targets, priors = guessed(self.scheme)[place], self.priors or {}
        best, exact = self._best_guess(targets[0], reports, priors.get(targets[0].name))
        if whole := len(targets) > 1:
            exact = not priors and all(self._best_guess(question, reports, None)[1] for question in targets)
            best = tuple_guess(self.scheme, reports) if exact else None
        commonest = [
            blind_guess(q) if q.numeric else self._spread[q.name][int(np.argmax(self._estimates[q.name]))]
            for q in targets
        ]
        return trials.figure(
            self.alpha, histogram=float(np.prod(commonest)), best=best, exact=exact,
            reached=whole or targets[0].name not in priors, **guess_terms(targets, priors, reports),
        )  # fmt: skip

    def _best_guess(self, question: Question, reports: int, prior: Floats | None) -> tuple[float | None, bool]:
        """Computed for the values that the devices have; exact where a guess is as good for any value."""
        if prior is not None:
            best, exact = best_guess(self.scheme, question, reports, self._spread[question.name])
            return best, exact and not question.faked
        if question.numeric:
            memoised, spread = self.scheme.survey.longitudinal, self._spread[question.name]
            return number_guess(question, reports, memoised, spread), not self.scheme.takes_turns
        encoding = question.mechanism.encoding
        hashed = not (encoding.exclusive or isinstance(encoding.answer, PackedBits))
        uneven_fakes = question.fake is not None and np.ptp(question.fake) > 0
        best, exact = best_guess(self.scheme, question, reports)
        alike = not hashed and not isinstance(question.mechanism.first, MatrixRound) and not uneven_fakes
        return best, exact and alike

    def _found(self, what: str, reports: int, trials: Trials) -> Figure:
        questions, luck = self.scheme.questions, 1 / len(self.scheme.questions)
        best, exact = None, False
        if reports == 1 and not self.scheme.takes_turns:
            best, exact = attribute_inference(questions, self._spread)
        elif self.scheme.survey.longitudinal:
            best, _ = attribute_inference(questions, self._spread, inf)
        return trials.figure(
            self.alpha, attack="which", target="the true attribute", knows=KNOWS[what], reports=reports, luck=luck,
            best=best, exact=exact and what == "knows",
        )  # fmt: skip


def _published(observed: Observed, question: Question) -> Floats:
    """The consistent histogram of the first period, as it would be published."""
    rows = observed.answering_first(question.name)
    if not len(rows):
        return np.full(question.k, 1 / question.k)
    return norm_sub(estimated(question, observed.answers[question.name][0][rows]))


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
