"""The figures of a measured population: guesses, the true attribute, links and forgeries, block by block of devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from math import inf, prod

import numpy as np

from analytics.estimation import estimate, norm_sub
from audit.closed.guessing import best_guess, tuple_guess
from audit.closed.which import attribute_inference
from audit.computed import FORGED, FORGERS, WHOLE, Priors, asked, cheapest, forgeable, shares_known
from audit.intervals import Trials
from audit.measured.forging import forged_gain
from audit.measured.gaps import Followed
from audit.measured.guessing import guess_trials, shares_of, tuple_trials, which_trials
from audit.measured.linking import link_trials
from audit.measured.observed import Observed
from audit.measured.places import place_figures
from audit.measured.published import KINDS, published_trials
from audit.report import Attack, Attacker, Figure, Finding
from protocols.arrays import Floats
from protocols.mechanisms import FreshHash, Hashed, MatrixRound
from protocols.privacy import evidence, first_guess, trait_values
from protocols.question import Question
from protocols.scheme import Scheme

TARGETS = 2000  # reports whose earlier one is looked for
CANDIDATES = 20_000  # among at most so many devices

Key = tuple[str, str, int]  # attack, target, reports


class Population:
    """Adds up what blocks of devices show. `prior`: the shares that the attacker knows; `published`: estimate them."""

    def __init__(
        self,
        scheme: Scheme,
        only: Collection[Attack],
        priors: Priors,
        published: bool,
        alpha: float,
        attacker: Attacker = "best",
    ) -> None:
        self._scheme = scheme
        self._only = only
        self._priors = dict(priors)
        self._published = published
        self._alpha = alpha
        self._attacker = attacker
        self._trials: dict[Key, Trials] = defaultdict(Trials)
        self._spread: dict[str, Floats] = {}
        self._estimates: dict[str, Floats] = {}
        self._once: list[Figure] = []
        self._followed = Followed(scheme)
        self._devices = 0

    def add(self, observed: Observed) -> None:
        """One block of devices. Links and forgeries are measured in the first one."""
        first = self._devices == 0
        self._spread = self._mixed(observed)
        self._devices += observed.devices
        if first:
            self._estimates = {q.name: _estimated(observed, q) for q in self._scheme.questions}
            if self._published:
                self._priors = self._estimates
            places = place_figures(observed) if "place" in self._only else ()
            self._once = [*places, *self._links(observed), *self._forgeries(observed)]
        self._followed.add(observed)
        for reports in sorted({1, observed.periods}):
            self._guess(observed, range(reports))

    def figures(self) -> list[Figure]:
        """What all blocks together show."""
        through_gaps = self._followed.figures() if "link" in self._only else ()
        return [*self._guesses(), *self._which(), *self._once, *through_gaps]

    def findings(self) -> list[Finding]:
        """What the author of the survey should know of its crowds."""
        return list(self._followed.findings()) if "link" in self._only else []

    def _mixed(self, observed: Observed) -> dict[str, Floats]:
        """How values are spread in all blocks so far."""
        new = {q.name: shares_of(observed, q.name, q.k) for q in self._scheme.questions}
        if not self._devices:
            return new
        weight = observed.devices / (observed.devices + self._devices)
        return {name: weight * share + (1 - weight) * self._spread[name] for name, share in new.items()}

    def _guess(self, observed: Observed, periods: range) -> None:
        questions = self._scheme.questions
        if "guess" in self._only:
            for q in asked(self._scheme):
                found = guess_trials(observed, q, periods, self._priors.get(q.name))
                self._trials["guess", q.name, len(periods)] += found
            if len(asked(self._scheme)) == len(questions) > 1:
                self._trials["guess", WHOLE, len(periods)] += tuple_trials(observed, periods, self._priors)
        if "which" in self._only and questions[0].faked:
            for what, spread in (("knows", self._spread), ("estimates", self._estimates)):
                self._trials["which", what, len(periods)] += which_trials(observed, spread, periods)
            if self._attacker == "published" and len(periods) == 1:
                for kind, trials in published_trials(observed, self._estimates).items():
                    self._trials["which", kind, 1] += trials

    def _guesses(self) -> Iterator[Figure]:
        for (attack, name, reports), trials in self._trials.items():
            if attack != "guess":
                continue
            if name == WHOLE:
                yield self._whole(reports, trials)
                continue
            question, prior = self._scheme.question(name), self._priors.get(name)
            commonest = int(np.argmax(self._estimates[name]))
            best, exact = self._best_guess(question, reports, prior)
            yield self._figure(
                attack="guess", target=name, knows=shares_known(prior), reports=reports, trials=trials,
                luck=1 / question.k, histogram=float(self._spread[name][commonest]), best=best, exact=exact,
                reached=prior is None,
            )  # fmt: skip

    def _whole(self, reports: int, trials: Trials) -> Figure:
        questions = self._scheme.questions
        commonest = [self._spread[q.name][int(np.argmax(self._estimates[q.name]))] for q in questions]
        alike = not self._priors and all(self._best_guess(q, reports, None)[1] for q in questions)
        return self._figure(
            attack="guess", target=WHOLE, knows=shares_known(next(iter(self._priors.values()), None)), reports=reports,
            trials=trials, luck=float(np.prod([1 / q.k for q in questions])), histogram=float(np.prod(commonest)),
            best=tuple_guess(self._scheme, reports) if alike else None, exact=alike,
        )  # fmt: skip

    def _best_guess(self, question: Question, reports: int, prior: Floats | None) -> tuple[float | None, bool]:
        """Computed for the values that the devices have; exact where a guess is as good for any value."""
        if prior is not None:
            shares = self._spread[question.name]
            best, exact = best_guess(self._scheme, question, reports, shares)
            return best, exact and not question.faked
        alike = not isinstance(question.mechanism.encoding, FreshHash | Hashed) and not isinstance(
            question.mechanism.first, MatrixRound
        )
        uneven_fakes = question.fake is not None and np.ptp(question.fake) > 0
        best, exact = best_guess(self._scheme, question, reports)
        return best, exact and alike and not uneven_fakes

    def _which(self) -> Iterator[Figure]:
        knows = {"knows": "the shares of all values", "estimates": "the survey's own estimates", **KINDS}
        luck = 1 / len(self._scheme.questions)
        for (attack, what, reports), trials in self._trials.items():
            if attack == "which":
                best, exact = None, False
                if reports == 1 and not self._scheme.takes_turns:
                    best, exact = attribute_inference(self._scheme.questions, self._spread)
                    exact &= what == "knows"
                elif self._scheme.survey.longitudinal:
                    best, _ = attribute_inference(self._scheme.questions, self._spread, inf)
                yield self._figure(
                    attack="which", target="the true attribute", knows=knows[what], reports=reports, trials=trials,
                    luck=luck, histogram=luck, best=best, exact=exact,
                )  # fmt: skip

    def _links(self, observed: Observed) -> Iterator[Figure]:
        turns = self._scheme.survey.one_in
        if "link" not in self._only or observed.periods <= turns:
            return
        for report in evidence(self._scheme.questions, self._scheme.discloses, self._scheme.survey.longitudinal):
            one = len(report.questions) == 1
            trials, candidates = link_trials(observed, report.questions, 0, turns, TARGETS, CANDIDATES)
            if not trials.count:
                continue
            among = max(1, candidates // prod(map(trait_values, report.questions)))
            yield self._figure(
                attack="link", target=report.questions[0].name if one else "a whole report",
                knows=f"answers and lifelong traits, among {candidates:,} devices", reports=2, trials=trials,
                luck=1 / among, histogram=1 / among, exact=False,
                best=first_guess(report.questions, among, self._scheme.survey.longitudinal),
            )  # fmt: skip

    def _forgeries(self, observed: Observed) -> Iterator[Figure]:
        if "forge" not in self._only:
            return
        for question in forgeable(self._scheme):
            target = cheapest(question)
            for forgery, does in FORGERS.items():
                found = forged_gain(observed, question, target, forgery, FORGED)
                if found is not None:
                    yield Figure(
                        attack="forge", target=question.name, knows=f"{FORGED:.0%} of the reports: {does}", reports=1,
                        unit="share", luck=0.0, histogram=0.0, measured=found.moved, trials=found.forged,
                        best=found.expected, exact=not question.attribute.placed,
                    )  # fmt: skip

    def _figure(
        self, *, attack: Attack, target: str, knows: str, reports: int, trials: Trials, luck: float, histogram: float,
        best: float | None, exact: bool, reached: bool = True,
    ) -> Figure:  # fmt: skip
        low, high = trials.interval(self._alpha)
        return Figure(
            attack=attack, target=target, knows=knows, reports=reports, unit="chance", luck=luck, histogram=histogram,
            measured=trials.share, low=low, high=high, trials=trials.count, best=best, exact=exact, reached=reached,
        )  # fmt: skip


def _estimated(observed: Observed, question: Question) -> Floats:
    """The consistent histogram of the first period, as it would be published."""
    rows = np.flatnonzero(observed.answered[0] & observed.answering(question.name))
    if not len(rows):
        return np.full(question.k, 1 / question.k)
    counts = question.mechanism.encoding.count(
        observed.answers[question.name][0][rows], np.zeros(len(rows), dtype=np.int64), 1
    )[0]
    return norm_sub(estimate(counts, len(rows), question.channel).value)
