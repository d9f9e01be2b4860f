"""An audit of a survey: computed, and measured with devices of its own."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from audit.computed import Priors, computed, findings
from audit.limits import breaches, parse_limits
from audit.measured import Population, Table, experiments
from audit.report import Attack, Attacker, AuditReport, Figure, Finding
from audit.verdicts import defects
from hearsay.auditing.devices import Way
from hearsay.auditing.populations import block, of_coins, tossed
from hearsay.auditing.reidentifying import Reidentifying
from hearsay.terminal.console import Step
from producers.scenarios import Scenario
from protocols.errors import SettingsError
from protocols.planning import DEVICES
from protocols.scheme import Scheme
from protocols.survey import Survey

BLOCK_BYTES = 128 << 20  # of reports that are kept at once
MOST_DEVICES = 1 << 18
MOST_RECORDS = 50_000  # among which people are looked for, unless there is a background


@dataclass(frozen=True)
class Auditing:
    """What is audited, and how. `prior` is even, published, or a file of shares by attribute and value."""

    survey: Survey
    crowd: int | None
    only: Collection[Attack]
    attacker: Attacker
    prior: str
    alpha: float
    seed: int
    fail_above: str

    @cached_property
    def scheme(self) -> Scheme:
        return Scheme(self.survey)

    def computed(self) -> AuditReport:
        """The closed forms alone."""
        figures = computed(self.scheme, self.devices, self.only, self.attacker, self.priors())
        return self.report(figures, findings(self.scheme, self.devices))

    def measured(self, people: Scenario, way: Way, step: Step, background: Table | None = None) -> AuditReport:
        """The closed forms, and the same attacks on devices with the values of `people`.

        People are looked for in `background`, by default among the people themselves.
        """
        priors = {} if self.prior == "published" else self.priors()
        seen = Population(self.scheme, self.only, priors, self.prior == "published", self.alpha, self.attacker)
        size = self._block(people.periods)
        for first in range(0, people.devices, size):
            last = min(first + size, people.devices)
            seen.add(way.observe(self.survey, last - first, people.periods, block(people, first, last), step))
        found = [*seen.figures(), *(self._coins(people, way, step) if "epsilon" in self.only else [])]
        hidden = seen.findings()
        if "reidentify" in self.only and len(self.scheme.questions) > 1:
            again, crowds = self._reidentified(people, way, step, background)
            found, hidden = [*found, *again], [*hidden, *crowds]
        measured = {(figure.attack, figure.target, figure.knows, figure.reports) for figure in found}
        known = computed(self.scheme, self.devices, self.only, self.attacker, priors)
        left = [f for f in known if (f.attack, f.target, f.knows, f.reports) not in measured]
        facts = {"source": people.name, "path": way.name, "devices": people.devices, "periods": people.periods}
        wrong = defects(found, self.alpha)
        told = [*findings(self.scheme, self.devices), *hidden, *wrong]
        return self.report([*found, *left], told).model_copy(update=facts)

    def _coins(self, people: Scenario, way: Way, step: Step) -> list[Figure]:
        """What coins prove about the loss; together wrong with half of alpha, the other half is for other figures."""
        planned = experiments(self.scheme, people.periods)
        size = self._block(people.periods)
        for number, experiment in enumerate(planned):
            shown = tossed(people.devices, self.seed, number)
            for first in range(0, people.devices, size):
                coins = shown[first : first + size]
                truths = of_coins(experiment.coins, coins)
                experiment.add(way.observe(self.survey, len(coins), people.periods, truths, step), coins)
        looks = sum(len(experiment.looks) for experiment in planned)
        return [figure for experiment in planned for figure in experiment.figures(self.alpha / 2 / looks)]

    def _reidentified(
        self, people: Scenario, way: Way, step: Step, background: Table | None
    ) -> tuple[list[Figure], list[Finding]]:
        first, questions = people.presences(0).values, self.scheme.questions
        table = {question.name: question.places(first)[:MOST_RECORDS] for question in questions}
        known = table if background is None else {question.name: question.places(background) for question in questions}
        looking = Reidentifying(self.survey, table, known, self.attacker, self.alpha, self.seed)
        return looking.run(way.keyring, step)

    def _block(self, periods: int) -> int:
        """How many devices are observed at once."""
        questions = self.scheme.questions
        row = sum(question.mechanism.encoding.answer.bytes + 4 for question in questions) * periods
        return max(1, min(MOST_DEVICES, BLOCK_BYTES // row))

    @property
    def devices(self) -> int:
        return self.crowd or self.survey.devices or DEVICES

    def priors(self) -> Priors:
        """The shares that the attacker knows; empty: all values are alike."""
        if self.prior == "even":
            return {}
        if self.prior == "published":
            known = {a.name: np.array(list(a.prior.values())) for a in self.survey.attributes if a.prior is not None}
            if not known:
                raise SettingsError(
                    "--prior published: nothing is published, and the survey has no priors",
                    "measure devices (--devices), or give a file of shares",
                )
            return known
        return read_shares(Path(self.prior), self.survey)

    def report(self, figures: list[Figure], found: list[Finding]) -> AuditReport:
        return AuditReport(
            survey=self.survey.id,
            fingerprint=self.scheme.fingerprint,
            solution=self.survey.solution,
            mechanisms={question.name: question.label for question in self.scheme.questions},
            crowd=self.devices,
            attacker=self.attacker,
            alpha=self.alpha,
            seed=self.seed,
            figures=tuple(figures),
            findings=tuple(found),
            breaches=breaches(figures, parse_limits(self.fail_above)),
        )


def read_shares(path: Path, survey: Survey) -> Priors:
    """Shares from a JSON file {attribute: {value: share}}, of all values of some attributes."""
    hint = 'write {"attribute": {"value": 0.5, "other": 0.5}}, with all values; shares sum to 1'
    try:
        given = json.loads(path.read_text("utf-8"))
        values = {name: survey.attribute(name).values for name in given}
        shares = {name: np.array([given[name][value] for value in values[name]], dtype=float) for name in given}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"{path} cannot be read as shares: {type(error).__name__}: {error}", hint) from None
    for name, row in shares.items():
        if (row < 0).any() or abs(row.sum() - 1) > 1e-6:
            raise SettingsError(f"{path}: the shares of {name!r} are not a distribution", hint)
    return shares
