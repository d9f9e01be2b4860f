"""Tests of the conduct of a program's devices: said beforehand, then carried out (docs/audit.md, "Conduct").

Devices have all values alike, and keep them. A gateway refuses some of their requests, so that they send again.
"""

from hearsay.terminal.console import Step
from lab.attacks.observed import Observed
from lab.attacks.report import Conduct, Finding
from lab.auditing.devices import everybody
from lab.auditing.programs import LASTING, Program
from lab.conduct.needs import Refusals, needs
from lab.conduct.testing import changed_retries, conduct_tests, judged
from lab.conduct.values import assigned
from protocols.scheme import Scheme
from protocols.survey import Survey

PERIODS = 4
"""Enough for two reports before a restart and two after it."""
REFUSED = 0.05
"""The share of requests that the audit's gateway refuses, apart from retries."""


def planned(scheme: Scheme, devices: int | None, periods: int | None, level: float) -> Conduct:
    """What will be tested, and how many devices each deviation needs; without a number, as many as all of them do."""
    during = periods or PERIODS
    needed = needs(scheme, during, level, Refusals(REFUSED, LASTING))
    most = max(need.devices for need in needed)
    return Conduct(
        level=level,
        devices=devices or most,
        periods=during,
        needs=tuple(needed),
        tests=(),
    )


def conduct_of(
    survey: Survey, plan: Conduct, program: str, seed: int, step: Step
) -> tuple[Conduct, list[Finding], Observed]:
    """The tests of a plan, carried out, what they find, and what was seen."""
    people = assigned(survey, plan.devices, seed)
    scenario = everybody(survey, "all values", plan.devices, plan.periods, lambda period: people.values)
    observed = Program(program, REFUSED, seed).observe(survey, scenario, step)
    tests, found = judged(conduct_tests(observed, people, seed), plan.level)
    found = [*changed_retries(observed), *found]
    return plan.model_copy(update={"tests": tuple(tests)}), found, observed
