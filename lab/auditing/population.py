"""The figures of a measured population: guesses, the true attribute, links and forgeries, block by block of devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from math import inf, prod

import numpy as np

from analytics.estimation import norm_sub
from audit.closed import attribute_inference, best_guess, tuple_guess
from audit.computed import FORGED, FORGERS, WHOLE, Priors, asked, cheapest, forgeable, shares_known
from audit.gaps import Followed
from audit.report import Attack, Attacker, Figure, Finding
from lab.attacks.forging import estimated, forged_gain
from lab.attacks.guessing import KINDS, guess_trials, published_trials, shares_of, tuple_trials, which_trials
from lab.attacks.linking import link_trials
from lab.attacks.observed import Observed
from lab.attacks.places import place_figures
from lab.attacks.trials import Trials
from protocols.arrays import Floats
from protocols.mechanisms import FreshHash, Hashed, MatrixRound
from protocols.privacy import evidence, first_guess, trait_values
from protocols.question import Question
from protocols.scheme import Scheme

TARGETS = 2000  # reports whose earlier one is looked for
CANDIDATES = 20_000  # among at most so many devices
KNOWS = {"knows": "the shares of all values", "estimates": "the survey's own estimates", **KINDS}

Counted = defaultdict[tuple[str, int], Trials]  # by target or knowledge, and reports


@dataclass
class Population:
    """Adds up what blocks of devices show. `priors`: the shares that the attacker knows; None: it estimates them."""

    scheme: Scheme
    only: Collection[Attack]
    priors: Priors | None
    alpha: float
    attacker: Attacker = "best"
    _devices: int = 0
    _guesses: Counted = field(default_factory=lambda: defaultdict(Trials))
    _which: Counted = field(default_factory=lambda: defaultdict(Trials))
    _once: list[Figure] = field(default_factory=list)
    _spread: dict[str, Floats] = field(default_factory=dict)
    _estimates: dict[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._followed = Followed(self.scheme)

    def add(self, observed: Observed) -> None:
        """One block of devices. Links and forgeries are measured in the first one."""
        self._spread = self._mixed(observed)
        if not self._devices:
            self._estimates = {q.name: _published(observed, q) for q in self.scheme.questions}
            if self.priors is None:
                self.priors = self._estimates
            places = place_figures(observed) if "place" in self.only else ()
            self._once = [*places, *self._links(observed), *self._forgeries(observed)]
        self._devices += observed.devices
        for name in self._followed.names:
            answering = observed.answering(name) if self._followed.divided else True
            for period in range(observed.periods):
                gaps = observed.gaps[period][observed.present[period] & answering]
                self._followed.count(name, period, *np.unique(gaps, return_counts=True))
        for reports in sorted({1, observed.periods}):
            self._guess(observed, range(reports), self.priors or {})

    def figures(self) -> list[Figure]:
        """What all blocks together show."""
        through_gaps = self._followed.figures() if "link" in self.only else ()
        guesses = [self._guessed(*key, trials) for key, trials in self._guesses.items()]
        return [
            *guesses,
            *(self._found(*key, trials) for key, trials in self._which.items()),
            *self._once,
            *through_gaps,
        ]

    def findings(self) -> list[Finding]:
        """What the author of the survey should know of its crowds."""
        return list(self._followed.findings()) if "link" in self.only else []

    def _mixed(self, observed: Observed) -> dict[str, Floats]:
        """How values are spread in all blocks so far."""
        new = {q.name: shares_of(observed, q.name, q.k) for q in self.scheme.questions}
        if not self._devices:
            return new
        weight = observed.devices / (observed.devices + self._devices)
        return {name: weight * share + (1 - weight) * self._spread[name] for name, share in new.items()}

    def _guess(self, observed: Observed, periods: range, priors: Priors) -> None:
        questions, reports = self.scheme.questions, len(periods)
        if "guess" in self.only:
            for q in asked(self.scheme):
                self._guesses[q.name, reports] += guess_trials(observed, q, periods, priors.get(q.name))
            if len(asked(self.scheme)) == len(questions) > 1:
                self._guesses[WHOLE, reports] += tuple_trials(observed, periods, priors)
        if "which" in self.only and questions[0].faked:
            for what, spread in (("knows", self._spread), ("estimates", self._estimates)):
                self._which[what, reports] += which_trials(observed, spread, periods)
            if self.attacker == "published" and reports == 1:
                for kind, trials in published_trials(observed, self._estimates).items():
                    self._which[kind, 1] += trials

    def _guessed(self, name: str, reports: int, trials: Trials) -> Figure:
        priors = self.priors or {}
        if name == WHOLE:
            targets, prior = self.scheme.questions, next(iter(priors.values()), None)
            exact = not priors and all(self._best_guess(q, reports, None)[1] for q in targets)
            best = tuple_guess(self.scheme, reports) if exact else None
        else:
            targets, prior = (self.scheme.question(name),), priors.get(name)
            best, exact = self._best_guess(targets[0], reports, prior)
        commonest = [self._spread[q.name][int(np.argmax(self._estimates[q.name]))] for q in targets]
        return trials.figure(
            self.alpha, attack="guess", target=name, knows=shares_known(prior), reports=reports,
            luck=float(np.prod([1 / q.k for q in targets])), histogram=float(np.prod(commonest)), best=best,
            exact=exact, reached=prior is None or name == WHOLE,
        )  # fmt: skip

    def _best_guess(self, question: Question, reports: int, prior: Floats | None) -> tuple[float | None, bool]:
        """Computed for the values that the devices have; exact where a guess is as good for any value."""
        if prior is not None:
            best, exact = best_guess(self.scheme, question, reports, self._spread[question.name])
            return best, exact and not question.faked
        hashed = isinstance(question.mechanism.encoding, FreshHash | Hashed)
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
            histogram=luck, best=best, exact=exact and what == "knows",
        )  # fmt: skip

    def _links(self, observed: Observed) -> Iterator[Figure]:
        turns, memoised = self.scheme.survey.one_in, self.scheme.survey.longitudinal
        if "link" not in self.only or observed.periods <= turns:
            return
        for report in evidence(self.scheme.questions, self.scheme.discloses, memoised):
            trials, candidates = link_trials(observed, report.questions, 0, turns, TARGETS, CANDIDATES)
            if not trials.count:
                continue
            among = max(1, candidates // prod(map(trait_values, report.questions)))
            yield trials.figure(
                self.alpha, attack="link",
                target=report.questions[0].name if len(report.questions) == 1 else "a whole report",
                knows=f"answers and lifelong traits, among {candidates:,} devices", reports=2, luck=1 / among,
                histogram=1 / among, best=first_guess(report.questions, among, memoised), exact=False,
            )  # fmt: skip

    def _forgeries(self, observed: Observed) -> Iterator[Figure]:
        for question in forgeable(self.scheme) if "forge" in self.only else ():
            for forgery, does in FORGERS.items():
                found = forged_gain(observed, question, cheapest(question), forgery, FORGED)
                if found is not None:
                    moved, forged, expected = found
                    yield Figure(
                        attack="forge", target=question.name, knows=f"{FORGED:.0%} of the reports: {does}", reports=1,
                        unit="share", luck=0.0, histogram=0.0, measured=moved, trials=forged, best=expected,
                        exact=not question.attribute.placed,
                    )  # fmt: skip


def _published(observed: Observed, question: Question) -> Floats:
    """The consistent histogram of the first period, as it would be published."""
    rows = observed.answering_first(question.name)
    if not len(rows):
        return np.full(question.k, 1 / question.k)
    return norm_sub(estimated(question, observed.answers[question.name][0][rows]))
