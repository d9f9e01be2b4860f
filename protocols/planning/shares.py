"""Which share of the devices draws each question, how exact its single values are, and shares for wanted errors.

A question with variance V (of one answer) that a share s of n devices answers has a standard error of sqrt(V / (n s)).
So shares in proportion to V / wanted^2 reach all wanted errors at once, with the fewest devices. Estimates of places
have no variance in closed form: they keep their shares, and the others divide what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, sqrt

from protocols.errors import SettingsError
from protocols.planning.precision import PlanModel, mean_variance, standard_error
from protocols.question import Question
from protocols.scheme import Scheme


class SharePlan(PlanModel):
    """One question. `even` is the share of people with each value if all are alike, `error` its standard error.

    `proposed` is the share of devices with which the wanted error needs the fewest devices, `proposed_error` the error
    at that share with the planned number of devices.
    """

    name: str
    values: int
    share: float
    even: float
    error: float
    wanted: float
    proposed: float
    proposed_error: float


class SharesPlan(PlanModel):
    """All questions but those about places, and how many devices reach all wanted errors at the proposed shares."""

    questions: tuple[SharePlan, ...]
    devices_needed: int


def shares_plan(scheme: Scheme, devices: int, error: float, wanted: Mapping[str, float]) -> SharesPlan | None:
    """The shares of a survey; `error` is wanted of questions that `wanted` does not name. None without shares.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: [
    ...     {name: a, values: [x, y]}, {name: b, values: [u, v]}]}'''))
    >>> found = shares_plan(scheme, 10_000, 0.02, {"a": 0.01})
    >>> [round(one.proposed, 3) for one in found.questions], found.devices_needed
    ([0.8, 0.2], 14634)
    """
    for name in wanted:
        scheme.survey.index(name)  # refuses what is not asked
        if scheme.question(name).attribute.placed:
            raise SettingsError(f"the error of places ({name}) has no formula", "leave it out, and measure: `evaluate`")
    if not scheme.discloses:
        if wanted:
            raise SettingsError("this survey has no shares: all devices answer all attributes", "leave --wanted out")
        return None
    asked = [question for question in scheme.questions if not question.attribute.placed]
    if not asked:
        return None
    errors = {question.name: wanted.get(question.name, error) for question in asked}
    left = sum(float(question.drawn) for question in asked)
    needed = {q.name: _even_variance(q) * scheme.survey.one_in / errors[q.name] ** 2 / left for q in asked}
    total = sum(needed.values())
    return SharesPlan(
        questions=tuple(
            SharePlan(
                name=q.name,
                values=q.k,
                share=float(q.drawn),
                even=1 / q.k,
                error=standard_error(scheme, q, devices, 1 / q.k),
                wanted=errors[q.name],
                proposed=left * needed[q.name] / total,
                proposed_error=errors[q.name] * sqrt(total / devices),
            )
            for q in asked
        ),
        devices_needed=ceil(total),
    )


def _even_variance(question: Question) -> float:
    return mean_variance(question.channel, 1 / question.k)
