"""The figures of a measured population: guesses, the true attribute, links and forgeries, block by block of devices."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf

import numpy as np

from analytics.estimation import norm_sub
from lab.attacks.accuracy import (
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
from lab.attacks.guessing import KINDS, guess_trials, same_knowledge_trials, which_trials
from lab.attacks.linking import link_figures
from lab.attacks.observed import Observed
from lab.attacks.places import place_figures
from lab.attacks.report import Attack, Attacker, Figure, Trials
from protocols.arrays import Floats, PackedBits
from protocols.mechanisms import MatrixRound
from protocols.privacy import blind_guess
from protocols.question import Question
from protocols.scheme import Scheme

KNOWS = {"knows": "the shares of all values", "estimates": "the survey's own estimates", **KINDS}


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
