"""A plan: what a survey will cost, reveal and deliver, before it is published.

Everything is computed from the compiled survey; `plan` is pure, and the command line only shows what it returns.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import ceil, sqrt

import numpy as np

from protocols.errors import SurveyError
from protocols.mechanisms.catalogue import RECORDS
from protocols.mechanisms.channels import SupportChannel
from protocols.mechanisms.places.displacement import moved
from protocols.mechanisms.places.rounds import PlanarChannel
from protocols.mechanisms.places.weighing import WeighedRound
from protocols.mechanisms.record import CHOOSERS
from protocols.mechanisms.rounds import Flip, Round
from protocols.planning.cautions import Caution, cautions
from protocols.planning.central import CentralPlan, TargetPlan, central_plan, target_plan
from protocols.planning.chances import Chance, GuaranteePlan, chances, guarantee_plan, in_short
from protocols.planning.links import CrowdPlan, crowd_plan
from protocols.planning.precision import (
    DRIFTS,
    PrecisionPlan,
    SharesPlan,
    mean_errors,
    mean_variance,
    nowcast_errors,
    shares_plan,
    standard_error,
)
from protocols.planning.presence import PresencePlan, presence_plan
from protocols.planning.ways import WayPlan, ways
from protocols.privacy.risk import attribute_guess, blind_guess, forged_weight, value_guess
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey.html import html_table
from protocols.survey.names import Told
from protocols.survey.sets import check_set

DEVICES = 10_000  # for which a survey is planned that does not say how many it expects


class NoisePlan(Told):
    """The probabilities of one round: keep with p, hit any other with q; None where a matrix is needed."""

    p: float | None
    q: float | None


class DisplacementPlan(Told):
    """How far a report is from the place, in metres: on average, in half of the cases, and in 95 of 100.

    `memo` is how far the memo is, on average, which averaging any number of reports cannot beat; None without memos.
    """

    mean: float
    median: float
    most: float
    memo: float | None


class AttributePlan(Told):
    """One attribute: which mechanism, why, and what it means."""

    name: str
    values: int
    mechanism: str
    detail: str  # its own parameter, such as g = 3
    why: str
    alternatives: dict[str, float]  # n times the variance at frequency 0
    eps_inf: float
    eps_1: float | None
    first: NoisePlan
    second: NoisePlan | None
    gain: float | None
    floor: tuple[float, float] | None  # smallest and largest
    answer_bytes: int
    precision: PrecisionPlan | None  # None for places: see `displacement`
    value_guess: float  # the best single-report guess of the value, or of an element of the set
    luck: float  # how often a guess without a report is right
    sizes: dict[int, float]  # of sets, by `several`: the standard error of the share of a value that no device has
    means: dict[str, float]  # of amounts, by mechanism: the standard error of the mean, if all numbers are alike
    forged_report: float | None  # how many people a forged report can add to one value; None for places
    displacement: DisplacementPlan | None = None


class Plan(Told):
    """Mechanisms, guarantees, precision and risks of a survey."""

    survey: str
    title: str
    solution: str
    calibration: str
    devices: int
    error: float
    attributes: tuple[AttributePlan, ...]
    nowcasts: dict[float, dict[str, float]]  # standard errors by drift in points, and by attribute
    guarantee: GuaranteePlan
    attribute_guess: float | None  # the best single-report guess of which attribute is true, values spread like fakes
    attribute_guess_if_same: float | None  # the same, if all devices have the same values
    ways: tuple[WayPlan, ...]
    crowd: CrowdPlan
    presence: PresencePlan | None  # what presence_epsilon costs
    central: dict[str, CentralPlan] | None  # what readers of results learn in a day, week, month, year; with `central`
    in_short: tuple[Chance, ...]  # six of who can learn what: from reports, from all of them, from results
    chances: tuple[Chance, ...]  # every loss of the guarantee and of `central`, as a chance
    target: TargetPlan | None  # which eps_1 keeps the figure that `central` asks for
    shares: SharesPlan | None  # how questions share the devices, and how they could; None: a report answers all
    cautions: tuple[Caution, ...]

    def _repr_html_(self) -> str:
        columns = ("attribute", "values", "guessed from a report", "by luck", "standard error")
        errors = [None if a.precision is None else a.precision.if_half for a in self.attributes]
        rows = [
            (a.name, a.values, f"{a.value_guess:.1%}", f"{1 / a.values:.1%}", error)
            for a, error in zip(self.attributes, errors, strict=True)
        ]
        title = f"{self.title or self.survey}: {self.guarantee.declared}; {self.devices:,} devices"
        return html_table(title, columns, rows, (f"{c.code}: {c.text}" for c in self.cautions))


def plan(
    scheme: Scheme,
    devices: int | None = None,
    error: float = 0.01,
    wanted: Mapping[str, float] | None = None,
    drifts: Sequence[float] = DRIFTS,
    *,
    alternatives: bool = True,
) -> Plan:
    """The plan of a compiled survey for a number of devices (by default the survey's own) and a wanted standard error.

    `wanted` names other errors, by attribute or cross, for which shares are proposed. Errors of nowcasts are
    computed for `drifts` in points. Without `alternatives`, other mechanisms, ways to collect the survey, wider
    budgets, and central figures of forged answers and of any values are left out, which take most of the time.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> drawn = plan(Scheme(parse_survey('''
    ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1,
    ...  attributes: [{name: colour, values: [red, green, blue]}]}''')))
    >>> drawn.attributes[0].mechanism, drawn.attributes[0].precision.devices_needed
    ('l-grr', 18004)
    """
    survey, questions = scheme.survey, scheme.questions
    devices = devices or survey.devices or DEVICES
    crowd = crowd_plan(scheme, devices, alternatives)
    hides = questions[0].faked
    attributes = tuple(_attribute(scheme, question, devices, error, alternatives) for question in questions)
    guarantee, readers = guarantee_plan(scheme), central_plan(scheme, devices, alternatives)
    precisions = {asked.name: asked.precision for asked in attributes if asked.precision}
    presence = presence_plan(scheme, devices, precisions, error)
    return Plan(
        survey=survey.id,
        title=survey.title,
        solution=survey.solution,
        calibration=survey.calibration,
        devices=devices,
        error=error,
        attributes=attributes,
        nowcasts={drift: nowcast_errors(scheme, devices, drift) for drift in drifts},
        guarantee=guarantee,
        attribute_guess=attribute_guess(questions, same=False) if hides else None,
        attribute_guess_if_same=attribute_guess(questions, same=True) if survey.solution == "rs+fd" else None,
        ways=ways(scheme, devices) if alternatives else (),
        crowd=crowd,
        presence=presence,
        central=readers,
        in_short=in_short(guarantee, readers, crowd, presence),
        chances=chances(guarantee, readers),
        target=target_plan(scheme, devices) if alternatives else None,
        shares=shares_plan(scheme, devices, error, wanted or {}),
        cautions=cautions(scheme, crowd, presence),
    )


def _attribute(scheme: Scheme, question: Question, devices: int, error: float, alternatives: bool) -> AttributePlan:
    mechanism, channel = question.mechanism, question.channel
    affine = channel if isinstance(channel, SupportChannel) else None
    placed = isinstance(channel, PlanarChannel)
    choosing, place = scheme.choosing, scheme.place(question)
    others = {} if placed or not alternatives else choosing.alternatives(scheme.questions, place)
    rivals = {label: rival.variance for label, rival in others.items() if isinstance(rival.channel, SupportChannel)}
    return AttributePlan(
        name=question.name,
        values=question.items.k,
        mechanism=question.label,
        detail=mechanism.encoding.detail,
        why=_why(scheme, question, rivals),
        alternatives=dict(sorted(rivals.items(), key=lambda item: item[1])),
        eps_inf=question.budget.inf,
        eps_1=question.budget.one,
        first=_noise(mechanism.first),
        second=None if mechanism.second is None else _noise(mechanism.second),
        gain=None if affine is None else affine.gain,
        floor=None if affine is None else (float(affine.floor.min()), float(affine.floor.max())),
        answer_bytes=mechanism.encoding.answer.bytes,
        precision=None if placed else _precision(scheme, question, devices, error),
        value_guess=value_guess(question),
        luck=blind_guess(question),
        sizes=_sizes(scheme, question, devices) if alternatives and question.sets else {},
        means=mean_errors(scheme, question, devices) if alternatives else {},
        forged_report=None if placed else forged_weight(channel),
        displacement=_displacement(question) if placed else None,
    )


def _why(scheme: Scheme, question: Question, rivals: dict[str, float]) -> str:
    asked = question.attribute.mechanism
    if question.attribute.placed:
        return _placed_why(question)
    if asked not in CHOOSERS:
        return "the survey asks for it"
    if question.label not in rivals:
        return f"chosen by {asked}"
    smaller = min(rivals, key=lambda label: rivals[label])
    if smaller == question.label:
        return f"chosen by {asked}: the smallest variance of all"
    considered = {
        label: rivals[label] for label in rivals if RECORDS[label].may_be_chosen(asked, scheme.choosing.use, question.k)
    }
    smallest = min(considered, key=lambda label: considered[label])
    if smallest == question.label:
        return f"chosen by {asked}: the smaller variance of those it considers ({smaller} would be smaller still)"
    fakes = RECORDS[smallest].fakes
    if fakes is not None and fakes.kind == "bare":
        reason = "shows which attribute is true"
    elif scheme.survey.guarantee == "attribute":
        reason = "leaves less budget to the other attributes"
    else:
        reason = "links reports in the survey's crowd"
    return f"chosen by {asked}: {smallest} has a smaller variance, but {reason}"


def _noise(noise: Round) -> NoisePlan:
    return NoisePlan(p=noise.p, q=noise.q) if isinstance(noise, Flip) else NoisePlan(p=None, q=None)


def _precision(scheme: Scheme, question: Question, devices: int, error: float) -> PrecisionPlan:
    share = scheme.answering_share(question)
    reports = devices * share
    nobody, half = mean_variance(question.channel, 0.0), mean_variance(question.channel, 0.5)
    repeats = scheme.survey.longitudinal
    return PrecisionPlan(
        reports=reports,
        if_nobody=standard_error(scheme, question, devices, 0.0),
        if_half=standard_error(scheme, question, devices, 0.5),
        at_best=sqrt(mean_variance(question.memo_channel, 0.0) / reports) if repeats else None,
        devices_needed=ceil(max(nobody, half) / error**2 / share),
    )


def _sizes(scheme: Scheme, question: Question, devices: int) -> dict[int, float]:
    """If sets were padded to half their size, to their own, or to twice as much, where a survey could ask that."""
    errors = {}
    for several in (question.several // 2, question.several, 2 * question.several):
        with suppress(ValueError, SurveyError):
            items = question.items.model_copy(update={"several": several})
            check_set(items, scheme.survey.key_of_attributes("several"))
            attributes = tuple(items if each.name == items.name else each for each in scheme.survey.attributes)
            other = Scheme(scheme.survey.model_copy(update={"attributes": attributes}))
            errors[several] = standard_error(other, other.question(items.name), devices, 0.0)
    return errors


def _displacement(question: Question) -> DisplacementPlan:
    """Of a whole grid as if it had no border; two rounds add up as independent moves do."""
    grid, first, second = question.attribute.grid, question.mechanism.first, question.mechanism.second
    assert grid is not None
    far, chances = moved(first, second)
    below = np.cumsum(chances)
    memo_far, memo_chances = moved(first)
    return DisplacementPlan(
        mean=float(far @ chances) * grid.cell,
        median=float(far[np.searchsorted(below, 0.5)]) * grid.cell,
        most=float(far[np.searchsorted(below, 0.95)]) * grid.cell,
        memo=float(memo_far @ memo_chances) * grid.cell if question.attribute.geo_inf is not None else None,
    )


def _placed_why(question: Question) -> str:
    """Why places are asked the way they are; of geo-tight also whether it is tight here, and what that costs."""
    rounds = (question.mechanism.first, question.mechanism.second)
    weighed = [noise for noise in rounds if isinstance(noise, WeighedRound)]
    if not weighed:
        return "places with geo are moved over their grid"
    loose = [noise for noise in weighed if not noise.tight]
    if not loose:
        return "places stay inside their area: the tight mechanism exists, and uses the whole budget"
    return (
        "places stay inside their area; the tight mechanism does not exist where a cell side costs "
        f"{max(noise.rate for noise in loose):.2g}, so the exponential mechanism is used, with weights, at "
        f"{min(noise.slope / noise.rate for noise in loose):.0%} of the rate "
        "(larger cells or a higher level make it tight)"
    )
