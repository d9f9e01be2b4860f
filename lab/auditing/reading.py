"""What readers of published tables reach, measured on crowds of the audit's own devices (docs/audit.md, section 10)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analytics.estimation import estimate, norm_sub
from hearsay.terminal.console import Step
from lab.attacks.coins import coin_audit
from lab.attacks.reidentify import Table, own_respondent
from lab.attacks.trials import Trials
from lab.audit.report import Figure, plain
from lab.published.readers import (
    Crowds,
    alone_in_its_gap,
    coin_scores,
    differencing,
    membership,
    memo_sent,
    positions_right,
    recovered,
    whole_people,
)
from protocols.arrays import Whole
from protocols.privacy import central_loss
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey import Survey

SIZE = 100  # answers in a table: of ten times as many, coins would prove nothing
CROWDS, FEWER, PERIODS = 2000, 200, 7  # fewer crowds where counting takes as long for 100 answers as for a million
AREAS = 40  # crowds whose paths are looked for
MOVES = 0.2  # the share of people who move from a period to the next
DELTA = 0.01  # the chance beyond a loss that so many coins can see


@dataclass(frozen=True)
class Reading:
    """Tables of crowds with `size` answers each, of devices with the values of `people`."""

    survey: Survey
    people: Table
    alpha: float
    seed: int
    size: int = SIZE

    def run(self, keyring: Keyring, alpha: float, step: Step) -> Iterator[Figure]:
        """All attacks on the attribute about which tables tell most; `alpha` is for what coins prove."""
        scheme = Scheme(self.survey.model_copy(update={"presence_epsilon": None}))  # noise on counts would hide more
        asked = [q for q in scheme.questions if not (q.attribute.placed or q.axes)]
        if not asked:
            return
        step(0, 2, "reading tables")
        question = max(asked, key=lambda question: self.promise(scheme, question))
        crowds = self.crowds(question, keyring)
        coins = self._random(0).random((PERIODS + 1, crowds.number)) < 0.5
        proven, guesses = coin_audit(coin_scores(crowds, coins[1:]).ravel(), coins[1:].ravel(), alpha, DELTA)
        knows = f"tables of {self.size} answers, everybody else's memos; but for a chance of {DELTA:g}"
        facts = {"measured": proven, "low": proven, "trials": guesses, "exact": False}
        target, promise = f"{question.name} in tables", self.promise(scheme, question)
        yield plain("epsilon", target, knows, 1, "nats", promise, **facts)
        yield self._figure(question, "membership", PERIODS, *membership(crowds, self._values(crowds), PERIODS))
        if self.survey.longitudinal:
            both = differencing(crowds, coins[0], question), differencing(crowds, coins[0], memo_sent(question))
            yield self._figure(question, "differencing: two periods, a device in the second alone", 2, *both)
        if self.survey.horizon > 1 and self.survey.presence_epsilon is None:
            both = alone_in_its_gap(crowds, coins[0], scheme)
            yield self._figure(question, "a device that is alone in its gap", 1, *both)
        step(1, 2, "reading tables")
        for area in (question for question in asked if question.role == "area"):
            luck, told, control = self.paths(self.crowds(area, keyring))
            knows = f"paths of people, {MOVES:.0%} of whom move in a period"
            yield self._figure(area, knows, PERIODS, told, control, luck.share)

    def promise(self, scheme: Scheme, question: Question) -> float:
        """The loss of one period's tables that coins can see: the central figure, or that of a report."""
        found = central_loss(scheme, {question.name: [self.size]}, delta=DELTA)
        return found.by_attribute.get(question.name, scheme.guarantees.per_attribute(1)[scheme.place(question)])

    def crowds(self, question: Question, keyring: Keyring) -> Crowds:
        respondent = own_respondent(self.survey, f"audit.readers.{question.name}", keyring)
        number = CROWDS if question.mechanism.encoding.memoisable else FEWER
        return Crowds(respondent, question, self.size, number)

    def paths(self, crowds: Crowds) -> tuple[Trials, Trials, Trials]:
        """Positions that are right if no table is seen, from the published tables, and from exact ones."""
        random, truth = self._random(2), [self._values(crowds)]
        for _ in range(PERIODS - 1):
            goes = random.random(len(truth[0])) < MOVES
            truth.append(np.where(goes, random.permutation(truth[0]), truth[-1]))
        tables = [crowds.tables(period, crowds.devices, values) for period, values in enumerate(truth)]
        shares, found = norm_sub(estimate(tables, self.size, crowds.question.channel).value), []
        for place in range(AREAS):
            own = np.array(truth)[:, place * self.size : (place + 1) * self.size]
            exact = np.array([np.bincount(row, minlength=crowds.question.k) for row in own])
            stays = np.tile(whole_people(exact.mean(axis=0), self.size), (PERIODS, 1))
            seen = np.array([whole_people(row, self.size) for row in shares[:, place]])
            found.append([positions_right(recovered(people), own) for people in (stays, seen, exact)])
        luck, told, control = (Trials(float(right), AREAS) for right in np.sum(found, axis=0))
        return luck, told, control

    def _values(self, crowds: Crowds) -> Whole:
        """Of everybody in all crowds, like those of the people."""
        return self._random(1).choice(np.asarray(self.people[crowds.question.name]), len(crowds.devices))

    def _random(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, 41, purpose])

    def _figure(
        self, question: Question, knows: str, periods: int, told: Trials, control: Trials, luck: float | None = 0.5
    ) -> Figure:
        facts = {"attack": "read", "target": question.name, "knows": f"{knows}; tables of {self.size} answers"}
        return told.figure(
            self.alpha, reports=periods, luck=luck, histogram=luck, best=control.share, exact=False, **facts
        )
