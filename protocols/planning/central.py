"""The central figure of a plan: what readers of the results of a day, a week, a month and a year will learn."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from pydantic import BaseModel, ConfigDict

from protocols.privacy.central import CentralLoss, central
from protocols.scheme import Scheme

SPANS = {"day": 1, "week": 7, "month": 30, "year": 365}
FORGED = 0.1


class CentralPlan(BaseModel):
    """The figures of one span of time: values constant, the same with a tenth of the answers forged, and any two."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    constant: CentralLoss
    if_forged: CentralLoss
    any: CentralLoss


def central_plan(scheme: Scheme, devices: int) -> dict[str, CentralPlan] | None:
    """By span of time, if so many devices report in each period; None for surveys without `central`.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> scheme = Scheme(parse_survey('''
    ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2, central: {delta: 1e-8},
    ...  attributes: [{name: gender, values: [a, b, c]}]}'''))
    >>> found = central_plan(scheme, 3250)["week"]
    >>> found.constant.epsilon, found.if_forged.epsilon, found.any.epsilon
    (0.756, 0.799, 0.787)
    """
    survey = scheme.survey
    if survey.central is None:
        return None
    sizes = {q.name: max(1, int(devices * q.drawn / survey.one_in)) for q in scheme.questions}
    found = {}
    for span, days in SPANS.items():
        crowds = {name: [size] * ceil(timedelta(days=days) / survey.period) for name, size in sizes.items()}
        delta = survey.central.delta
        found[span] = CentralPlan(
            constant=central(scheme, crowds, delta=delta),
            if_forged=central(scheme, crowds, delta=delta, forged=FORGED),
            any=central(scheme, crowds, delta=delta, relation="any"),
        )
    return found
