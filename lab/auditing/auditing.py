"""Audits: of a survey, computed and measured with devices of its own; and of what was collected."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from hearsay.terminal.console import Step
from lab.attacks.accuracy import Priors, guesses, of_values, which
from lab.attacks.beside import Beside
from lab.attacks.coins import experiments, losses
from lab.attacks.forging import forgeries
from lab.attacks.guessing import Population
from lab.attacks.linking import links
from lab.attacks.observed import Observed
from lab.attacks.places import places
from lab.attacks.readers import Reading, readings
from lab.attacks.reidentify import SURVEYS, TARGETS, Search, Table
from lab.attacks.report import Attack, Attacker, AuditReport, Conduct, Figure, Finding, defects
from lab.auditing.conduct import conduct_of, planned
from lab.auditing.devices import STEADY, Way, block, everybody, named, rows_of, ways_of_reports
from lab.populations import survey_values
from producers.files import TableSource
from producers.scenarios import Scenario
from protocols.errors import SettingsError
from protocols.planning import DEVICES
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey

PERIODS = 10
CONDUCT_SHARE = 1 / 4
"""Of alpha, for the conduct of devices, if attacks are carried out, too; alone it has all of it."""
NEEDED: dict[Attack, int] = {"reidentify": 1, "read": 1, "forge": 1}  # periods: more show these nothing new
BLOCK_BYTES = 128 << 20  # of reports that are kept at once
MOST_DEVICES = 1 << 18
TWINS = 200  # devices whose first reports are made again under another secret
MOST_RECORDS = 50_000  # among which people are looked for, unless there is a background


@dataclass(frozen=True)
class Auditing:
    """What is audited, and how. `prior` is even, exact, published, or a file of shares."""

    survey: Survey
    crowd: int | None
    only: Collection[Attack]
    attacker: Attacker
    prior: str
    alpha: float
    seed: int
    fail_above: str
    targets: int = TARGETS
    surveys: int = SURVEYS
    conduct: bool = False  # whether the conduct of a program's devices is tested, too

    @cached_property
    def scheme(self) -> Scheme:
        return Scheme(self.survey)

    @property
    def devices(self) -> int:
        return self.crowd or self.survey.devices or DEVICES

    def run(
        self,
        values: TableSource | None,
        scenario: str | None,
        devices: int | None,
        periods: int | None,
        background: TableSource | None,
        step: Step,
        kafka: str | None = None,
        program: str | None = None,
    ) -> AuditReport:
        """Measured if there are values, a scenario or a number of devices; otherwise the closed forms alone.

        Where neither a table nor a scenario tells, in as many periods as the attacks need: two answers are linked.
        """
        if values is None and scenario is None and devices is None:
            figures = computed(self.scheme, self.devices, self.only, self.attacker, self._priors())
            return self._report(figures, ())
        needed = {**NEEDED, "link": 1 + self.survey.one_in}
        most = periods or max((needed.get(attack, PERIODS) for attack in self.only), default=1)
        with ways_of_reports(kafka, program, self.seed) as (way, twin):
            if values is not None:
                people: Scenario = rows_of(self.survey, values, most)
            else:
                steady = scenario in (None, STEADY)
                people = named(self.survey, scenario or STEADY, devices, most if steady else periods, self.seed)
            known = None if background is None else survey_values(background, self.survey)
            return self.measured(people, way, step, known, twin)

    def plan(self, devices: int | None, periods: int | None) -> Conduct:
        """How the conduct of a program's devices will be tested."""
        return planned(self.scheme, devices, periods, self.alpha * (CONDUCT_SHARE if self.only else 1))

    def with_conduct(self, report: AuditReport | None, plan: Conduct, program: str | None, step: Step) -> AuditReport:
        """A report, or none, and the tests of a plan; without a program the plan alone."""
        if program is None:
            return self._report((), (), conduct=plan) if report is None else report.model_copy(update={"conduct": plan})
        tested, found, observed = conduct_of(self.survey, plan, program, self.seed, step)
        exact = Beside()
        exact.add(observed)
        found += exact.findings(0.0)
        if report is None:
            facts = {"source": "all values", "path": program, "devices": plan.devices, "periods": plan.periods}
            return self._report((), found, conduct=tested, **facts)
        return report.model_copy(update={"conduct": tested, "findings": (*report.findings, *found)})

    def measured(
        self, people: Scenario, way: Way, step: Step, background: Table | None = None, twin: Way | None = None
    ) -> AuditReport:
        """The closed forms, and the same attacks on devices with the values of `people`.

        People are looked for in `background`, by default among the people themselves. `twin` is the same way for
        devices with another secret. Of sets and thresholds only guesses are carried out.
        """
        special = [q.name for q in self.scheme.questions if not of_values(q)]
        only = [attack for attack in self.only if attack == "guess" or not special]
        if special and not only:
            raise SettingsError(
                f"{', '.join(special)}: of sets and thresholds, guesses alone are carried out",
                "leave --devices out, or add guess to --only",
            )
        priors = None if self.prior == "published" else self._priors(people)
        beside, figures = Beside(), list[Figure]()

        def observe(some: Scenario) -> Observed:
            observed = way.observe(self.survey, some, step)
            if twin is not None and not beside.reports:  # both ways name their first run alike
                few = replace(block(some, 0, min(TWINS, some.devices)), periods=1)
                beside.add_twin(observed, twin.observe(self.survey, few, step))
            beside.add(observed)
            return observed

        if set(only) != {"epsilon"}:
            seen = Population(self.scheme, only, priors, self.alpha, self.attacker)
            for some in self._blocks(people):
                seen.add(observe(block(people, some.start, some.stop)))
            figures = seen.figures()
        planned = experiments(self.scheme, people.periods) if "epsilon" in only else []
        for number, experiment in enumerate(planned):
            shown = np.random.default_rng([self.seed, number, people.devices]).random(people.devices) < 0.5
            for some in self._blocks(people):
                coins = shown[some.start : some.stop]
                values = partial(experiment.coins.values, coins)
                observed = observe(everybody(self.survey, "coins", len(coins), people.periods, values))
                experiment.add(observed, coins)
                if some.start == 0:
                    beside.add_coins(observed, coins, steady=not experiment.coins.change)
        # Half of alpha is for proven losses: those of reports, and the one of tables. Conduct takes its share of it.
        share = 1 / 2 - (CONDUCT_SHARE if self.conduct else 0)
        each = self.alpha * share / (1 + sum(len(experiment.looks) for experiment in planned))
        figures += [figure for experiment in planned for figure in experiment.figures(each)]
        found = beside.findings(self.alpha / 4)
        first = {name: column[:MOST_RECORDS] for name, column in people.presences(0).values.items()}
        both = (first, first if background is None else background)
        table, other = ({q.name: q.places(rows) for q in self.scheme.questions} for rows in both)
        if "read" in only and way.keyring is not None:
            step(0, 1, "reading tables")
            figures += Reading(self.survey, table, self.alpha, self.seed).run(way.keyring, each)
        if "reidentify" in only and len(self.scheme.questions) > 1 and way.keyring is not None:
            search = Search(self.survey, table, other, self.attacker, self.alpha, self.seed, self.targets, self.surveys)
            again, crowds = search.run(way.keyring, step)
            figures, found = [*figures, *again], [*found, *crowds]
        found += defects(figures, self.alpha)
        measured = {(figure.attack, figure.target, figure.knows, figure.reports) for figure in figures}
        known = computed(self.scheme, self.devices, self.only, self.attacker, priors)
        figures += [f for f in known if (f.attack, f.target, f.knows, f.reports) not in measured]
        facts = {"source": people.name, "path": way.name, "devices": people.devices, "periods": people.periods}
        return self._report(figures, found, **facts)

    def _blocks(self, people: Scenario) -> list[range]:
        """Which devices are observed at once."""
        row = sum(q.mechanism.encoding.answer.bytes + 4 for q in self.scheme.questions) * people.periods
        size = max(1, min(MOST_DEVICES, BLOCK_BYTES // row))
        return [range(first, min(first + size, people.devices)) for first in range(0, people.devices, size)]

    def _priors(self, people: Scenario | None = None) -> Priors:
        """The shares of values that the attacker knows; empty: all values are alike."""
        asked = [question for question in self.scheme.questions if of_values(question)]
        if self.prior == "even":
            return {}
        if self.prior == "exact" and people is not None:
            values = people.presences(0).values
            columns = {q.name: np.bincount(q.places(values), minlength=q.k) for q in asked}
            return {name: counts / max(1, counts.sum()) for name, counts in columns.items()}
        if self.prior not in ("exact", "published"):
            known = read_shares(Path(self.prior), self.survey)
        else:
            known = {a.name: np.array(list(a.prior.values())) for a in self.survey.attributes if a.prior is not None}
            if not known or self.prior == "exact":
                raise SettingsError(
                    f"--prior {self.prior}: nobody's shares are known, and there are no priors of the survey to use",
                    "measure devices (--devices), or give a file of shares",
                )
        return {question.name: known[question.name] for question in asked if question.name in known}

    def _report(self, figures: Sequence[Figure], found: Iterable[Finding], **facts: Any) -> AuditReport:
        facts |= {"crowd": self.devices, "attacker": self.attacker, "alpha": self.alpha, "seed": self.seed}
        return AuditReport.of(self.scheme, figures, found, self.fail_above, **facts)


def computed(
    scheme: Scheme, devices: int, only: Collection[Attack], attacker: Attacker = "best", priors: Priors | None = None
) -> list[Figure]:
    """Every figure of the attacks in `only` that has a closed form, among `devices`. Takes well under a second."""
    known = priors or {}
    parts: dict[Attack, Iterator[Figure]] = {
        "guess": guesses(scheme, known),
        "place": places(scheme),
        "which": which(scheme, known),
        "link": links(scheme, devices),
        "epsilon": losses(scheme, attacker),
        "read": readings(scheme, devices),
        "forge": forgeries(scheme, known, devices),
    }
    return [figure for attack, figures in parts.items() if attack in only for figure in figures]


def budgets(survey: Survey, text: str) -> dict[str, Survey]:
    """The survey with each of these budgets: eps, or eps_inf, to which eps_1 keeps its ratio. Without text, itself."""
    if not text:
        return {"": survey}
    name = "eps_inf" if survey.eps is None else "eps"
    found, now = {}, getattr(survey, name)
    given = survey.model_dump(mode="json", exclude={"version"})
    for word in map(str.strip, text.split(",")):
        try:
            scaled = {name: float(word), "eps_1": survey.eps_1 and survey.eps_1 * float(word) / now}
        except (ValueError, TypeError):  # no number, or places alone, which have budgets of their own
            hint = "write numbers, such as 1,2,4, for a survey with eps or eps_inf"
            raise SettingsError(f"--eps {text}: the survey cannot have these budgets", hint) from None
        found[word] = parse_survey(json.dumps(given | scaled), f"--eps {word}", version=survey.version)
    return found


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
