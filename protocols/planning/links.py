"""What links two reports of a device, for the author of a survey: bits, guesses, and what other budgets would do."""

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import replace
from math import inf, log2

from protocols.errors import InfeasibleError
from protocols.mechanisms.catalogue import build
from protocols.mechanisms.rounds import MatrixRound
from protocols.privacy.crowd import Evidence, evidence, hidden_bits, trackability, trait_values
from protocols.scheme import Scheme
from protocols.survey.model import MAX_EPS, Survey
from protocols.survey.names import Told

RATIOS = (1.5, 2.0, 3.0, 4.0)  # of eps_inf to eps_1
CURVED = 256  # values of an ordered attribute up to which other budgets are calculated: each needs its own matrix


class LinkPlan(Told):
    """By how much two reports of one device are alike, among `devices`.

    `first_guess` is the chance that the best guess of which earlier report is the same device's is right; `luck` that
    of a blind guess among devices with the same lifelong traits. The trackability of two reports, and of any number, is
    None where it is not known.
    """

    answer_bits: float
    trait_bits: float
    first_guess: float
    luck: float
    links: bool
    trackability: float | None
    trackability_for_ever: float | None


class WiderPlan(Told):
    """The same attribute with the same eps_1 and another eps_inf."""

    ratio: float
    eps_inf: float
    bits: float
    first_guess: float


class CrowdPlan(Told):
    """What links reports, against what a crowd of `devices` hides.

    `report` is for all attributes together, where a report answers them all. `wider` is by attribute. `horizon` is the
    largest gap: a smaller one names the period of the device's previous report. `gap_bits` is the most that gaps tell
    on average, or the flags of a survey with `visitors`; rare ones tell more. `candidates` are among how many reports
    the one before is, at least: those of one period.
    """

    devices: int
    crowd_bits: float
    hidden_bits: float
    horizon: int
    gap_bits: float
    candidates: int | None
    attributes: dict[str, LinkPlan]
    report: LinkPlan | None
    wider: dict[str, tuple[WiderPlan, ...]]


def crowd_plan(scheme: Scheme, devices: int, alternatives: bool = True) -> CrowdPlan:
    """What links the reports of a survey among `devices`; with alternatives, also what wider budgets would."""
    memoised = scheme.survey.longitudinal
    reports = evidence(scheme.questions, scheme.discloses, memoised, scheme.survey.one_in)
    # What each attribute contributes, also where a report answers all of them.
    alone = evidence(scheme.questions, True, memoised, scheme.survey.one_in)
    names = [question.name for question in scheme.questions]
    first = {_terms(one): one for one in reversed(alone)}  # of attributes that are asked alike
    link = {terms: _link(one, devices) for terms, one in first.items()}
    wider = {terms: tuple(_wider(one, devices)) for terms, one in first.items() if alternatives}
    return CrowdPlan(
        devices=devices,
        crowd_bits=log2(devices),
        hidden_bits=hidden_bits(devices),
        horizon=scheme.survey.horizon,
        gap_bits=gap_bits(scheme.survey),
        candidates=candidates(scheme, devices),
        attributes={name: link[_terms(one)] for name, one in zip(names, alone, strict=True)},
        report=None if len(alone) == len(reports) else _link(reports[0], devices),
        wider={name: wider[_terms(one)] for name, one in zip(names, alone, strict=True) if alternatives},
    )


def _terms(one: Evidence) -> tuple[Hashable, ...]:
    """All that the figures of an attribute depend on: those with the same terms have the same figures."""
    (question,) = one.questions
    attribute = question.attribute
    if attribute.placed or question.fake is not None:
        return (question.name,)
    shares = None if attribute.prior is None else tuple(attribute.prior[value] for value in attribute.values)
    asked = question.record.name, question.k, question.budget, attribute.parameter
    return *asked, shares, question.share, question.drawn, one.traits, one.memoised


def _link(one: Evidence, devices: int) -> LinkPlan:
    return LinkPlan(
        answer_bits=one.answer_bits,
        trait_bits=one.trait_bits,
        first_guess=one.first_guess(devices),
        luck=1 / one.alike(devices),
        links=one.links(devices),
        trackability=trackability(one, 1),
        trackability_for_ever=trackability(one, inf),
    )


def _wider(one: Evidence, devices: int) -> list[WiderPlan]:
    question = one.questions[0]
    found: list[WiderPlan] = []
    if question.attribute.placed or question.budget.one is None:
        return found
    if isinstance(question.mechanism.first, MatrixRound) and question.k > CURVED:
        return found
    budgets = {ratio: replace(question.budget, inf=ratio * question.budget.one) for ratio in RATIOS}
    for ratio, budget in ((ratio, budget) for ratio, budget in budgets.items() if budget.inf <= MAX_EPS):
        with suppress(InfeasibleError):
            mechanism = build(question.mechanism.name, question.k, budget, question.attribute.parameter)
            other = replace(one, questions=(replace(question, mechanism=mechanism, budget=budget),))
            found.append(
                WiderPlan(ratio=ratio, eps_inf=budget.inf, bits=other.bits, first_guess=other.first_guess(devices))
            )
    return found


def gap_bits(survey: Survey) -> float:
    """The most that gaps or flags tell on average about the report before: in which period or units it was.

    The flags that a report can have contain each other, so there is at most one more of them than there are units.
    """
    return log2(len(survey.units) + 1 if survey.units else survey.horizon)


def candidates(scheme: Scheme, devices: int) -> int | None:
    """Among how many reports the one before is, at least, if `devices` report in a period; None where nothing tells.

    A gap below the horizon names a period. Flags allow several, but on the second day of a week only the first.
    """
    if not scheme.survey.units and scheme.survey.horizon == 1:
        return None
    divided = scheme.questions if scheme.discloses else ()
    shares = [float(q.drawn) / trait_values(q) for q in divided] or [1 / max(map(trait_values, scheme.questions))]
    return int(devices * min(shares))
