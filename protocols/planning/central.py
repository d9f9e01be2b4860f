"""The central figure of a plan: what readers of the results of a day, a week, a month and a year will learn."""

from collections.abc import Callable
from datetime import timedelta
from math import ceil

from protocols.privacy.central.figure import CentralLoss, CentralRelation, central
from protocols.scheme import Scheme
from protocols.survey.names import Duration, Told

SPANS = {"day": timedelta(1), "week": timedelta(7), "month": timedelta(30), "year": timedelta(365)}
FORGED = 0.1


class CentralPlan(Told):
    """The figures of one span of time: values constant, the same with a tenth of the answers forged, and any two.

    The last two are None in a plan without alternatives.
    """

    constant: CentralLoss
    if_forged: CentralLoss | None
    any: CentralLoss | None


class TargetPlan(Told):
    """The largest eps_1, in hundredths and with twice as much for eps_inf, that keeps a figure; None: there is none."""

    target: float
    per: Duration
    eps_1: float | None
    figure: CentralLoss | None  # with that eps_1


def central_plan(scheme: Scheme, devices: int, alternatives: bool = True) -> dict[str, CentralPlan] | None:
    """By span of time, if so many devices report in each period; None for surveys without `central`.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> scheme = Scheme(parse_survey('''
    ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2, central: {target: 0.5, per: 1w},
    ...  attributes: [{name: gender, values: [a, b, c]}]}'''))
    >>> found = central_plan(scheme, 3250)["week"]
    >>> found.constant.epsilon, found.if_forged.epsilon, found.any.epsilon
    (0.756, 0.799, 0.787)
    >>> found = target_plan(scheme, 3250)
    >>> found.eps_1, found.figure.epsilon
    (1.47, 0.499)
    """
    if scheme.survey.central is None:
        return None
    return {
        span: CentralPlan(
            constant=_figure(scheme, devices, time),
            if_forged=_figure(scheme, devices, time, forged=FORGED) if alternatives else None,
            any=_figure(scheme, devices, time, relation="any") if alternatives else None,
        )
        for span, time in SPANS.items()
    }


def target_plan(scheme: Scheme, devices: int) -> TargetPlan | None:
    """What keeps the survey's target for so many devices; None for surveys without one."""
    survey = scheme.survey
    if survey.central is None or survey.central.target is None:
        return None
    target, per = survey.central.target, survey.central.per

    def at(eps_1: float) -> CentralLoss:
        budgets = {"eps_inf": 2 * eps_1, "eps_1": eps_1} if survey.longitudinal else {"eps": eps_1}
        return _figure(Scheme(survey.model_copy(update=budgets)), devices, per)

    found = eps_1_for(at, target)
    return TargetPlan(target=target, per=per, eps_1=found, figure=None if found is None else at(found))


def eps_1_for(at: Callable[[float], CentralLoss], target: float) -> float | None:
    """The largest eps_1, in hundredths, whose figure is at most `target`; `at` gives figures, which rise with it."""
    low, high = 0, 1000
    while high - low > 1:
        middle = (low + high) // 2
        found = at(middle / 100).epsilon
        low, high = (middle, high) if found is not None and found <= target else (low, middle)
    return low / 100 if low else None


def _figure(
    scheme: Scheme, devices: int, time: timedelta, *, relation: CentralRelation = "constant", forged: float = 0.0
) -> CentralLoss:
    survey = scheme.survey
    assert survey.central is not None
    periods = ceil(time / survey.period)
    crowds = {q.name: [max(1, int(devices * q.drawn / survey.one_in))] * periods for q in scheme.questions}
    return central(scheme.guarantees, crowds, delta=survey.central.delta, relation=relation, forged=forged)
