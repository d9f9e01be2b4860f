"""The same attributes asked in other ways: with memos, or with fresh noise in every period or in one of several.

Which way protects more depends on how often values change and on whether reports can be linked.
"""

from collections.abc import Iterator
from contextlib import suppress

from protocols.errors import SurveyError
from protocols.mechanisms.catalogue import RECORDS
from protocols.mechanisms.record import CHOOSERS, Use
from protocols.planning.precision import nowcast_errors, standard_error
from protocols.privacy.guarantees import Loss
from protocols.scheme import Scheme
from protocols.survey.attribute import Attribute
from protocols.survey.model import MAX_EPS, Survey
from protocols.survey.names import Told

PERIODS = (10, 100)  # consecutive periods, all of whose reports are linked
TURNS = (1, 7, 30)  # one_in
DRIFT = 0.2  # points per period, for nowcasts
WIDER = 2  # times eps: the eps_inf of memos beside fresh noise


class WayPlan(Told):
    """One way to ask. `any` is by number of consecutive periods, between any two histories.

    `errors` are the standard errors of the share of a value that no device has, in one period, by attribute,
    `nowcasts` those of its nowcasts if it moves by 0.2 points in a period.
    """

    terms: str
    declared: bool
    any: dict[int, Loss]
    errors: dict[str, float]
    nowcasts: dict[str, float]


def ways(scheme: Scheme, devices: int) -> tuple[WayPlan, ...]:
    """The survey's own way and the others; those that its mechanisms or budgets do not allow are left out."""
    return tuple(
        WayPlan(
            terms=budgets_in_words(one.survey),
            declared=one is scheme,
            any={t: one.guarantees.any(t) for t in PERIODS},
            errors={q.name: standard_error(one, q, devices, 0.0) for q in one.questions if not q.attribute.placed},
            nowcasts=nowcast_errors(one, devices, DRIFT),
        )
        for one in _schemes(scheme)
    )


def budgets_in_words(survey: Survey) -> str:
    """The declared budgets of a survey."""
    budgets = {"eps": survey.eps, "eps_inf": survey.eps_inf, "eps_1": survey.eps_1}
    given = [f"{name} = {value:g}" for name, value in budgets.items() if value is not None]
    for attribute in survey.attributes:
        reaches = {"geo_inf": attribute.geo_inf, "geo": attribute.geo}
        given += [f"{key} = {r.level:g} within {r.radius:g} m" for key, r in reaches.items() if r is not None]
    text = ", ".join(given)
    return text if survey.one_in == 1 else f"{text}, one_in = {survey.one_in}"


def _schemes(scheme: Scheme) -> Iterator[Scheme]:
    """With memos first, then with fresh noise, the more often the earlier."""
    survey = scheme.survey
    if any(attribute.placed for attribute in survey.attributes):
        yield scheme  # places have budgets of another kind, for which the others would have to be compared
        return
    if survey.longitudinal:
        yield scheme
    elif survey.eps is not None and WIDER * survey.eps <= MAX_EPS:
        with suppress(SurveyError):
            yield Scheme(_asked(survey, "two rounds", eps_inf=WIDER * survey.eps, eps_1=survey.eps))
    for turns in sorted({*TURNS, survey.one_in}):
        if not survey.longitudinal and turns == survey.one_in:
            yield scheme
            continue
        with suppress(SurveyError):
            yield Scheme(_asked(survey, "one-shot", eps=survey.eps or survey.eps_1 or survey.eps_inf, one_in=turns))


def _asked(survey: Survey, use: Use, **budgets: float | None) -> Survey:
    """The survey with other budgets."""
    attributes = survey.attributes
    if not survey.solution.startswith("rs"):  # fakes have the same mechanisms with and without memos
        attributes = tuple(_as_used(attribute, use) for attribute in attributes)
    nothing = dict.fromkeys(("eps", "eps_inf", "eps_1", "memo_cap"))
    return survey.model_copy(update={**nothing, "one_in": 1, "attributes": attributes, **budgets})


def _as_used(attribute: Attribute, use: Use) -> Attribute:
    """The attribute with its mechanism, or with the one of the same name for this use, or else with auto."""
    name = attribute.mechanism
    if name in CHOOSERS or RECORDS[name].fits(use):
        return attribute
    other = name.removeprefix("l-") if use == "one-shot" else f"l-{name}"
    known = other in RECORDS and RECORDS[other].fits(use)
    return attribute.model_copy(update={"mechanism": other if known else "auto", "parameter": None})
