"""Cautions for the author of a survey: each has a code, what holds, and what to do about it.

Their words are in cautions.txt, a paragraph each, with values in braces. In a key of two words the first is the code.
"""

from collections.abc import Iterable, Iterator
from math import inf

import numpy as np

from protocols.mechanisms.catalogue import RECORDS
from protocols.planning.links import CrowdPlan, LinkPlan, candidates
from protocols.planning.precision import mean_errors, standard_error
from protocols.planning.presence import PresencePlan
from protocols.privacy.guarantees import Loss, in_words
from protocols.privacy.linked import element_loss
from protocols.privacy.risk import forged_weight
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey.attribute import Attribute
from protocols.survey.names import Told, paragraphs

CHEAP_TO_POISON = 20  # people that a forged report may count for without a caution
FEW_CANDIDATES, FEWEST_CANDIDATES = 20, 5  # for the report before another one: below them a caution, an error
USELESS = 0.5 / 1.96  # a standard error whose 95 % interval is as wide as everything a share can be
IDENTIFYING_BITS = 32  # of a memo that is sent as it is
WORDS = paragraphs("protocols.planning", "cautions.txt")


class Caution(Told):
    """Something about this survey that is easily overlooked."""

    code: str
    text: str


Found = Iterator[Caution]


def cautions(scheme: Scheme, crowd: CrowdPlan, presence: PresencePlan | None) -> tuple[Caution, ...]:
    """Every caution that applies."""
    looks = (_of_fakes, _of_linking, _of_costs, _of_sets, _of_forgery, _of_unlisted)
    return (
        *_of_crosses(scheme, crowd.devices),
        *_of_amounts(scheme, crowd.devices),
        *_of_crowds(scheme, crowd),
        *(caution for look in looks for caution in look(scheme)),
        *_of_presence(presence, crowd.devices),
    )


def _caution(key: str, **values: object) -> Caution:
    return Caution(code=key.split()[0], text=" ".join(WORDS[key].format(**values).split()))


def _of_crowds(scheme: Scheme, crowd: CrowdPlan) -> Found:
    reports = crowd.attributes if crowd.report is None else {"a whole report": crowd.report}
    for name, link in reports.items():
        if link.links:
            bits, right, luck = link.answer_bits + link.trait_bits, 100 * link.first_guess, 100 * link.luck
            told = {"name": name, "link": link, "crowd": crowd, "remedy": WORDS[_remedy(scheme, link, crowd)]}
            yield _caution("link-by-answer", bits=bits, right=right, luck=luck, **told)


def _of_crosses(scheme: Scheme, devices: int) -> Found:
    for question in filter(lambda question: question.axes, scheme.questions):
        error, even = standard_error(scheme, question, devices, 1 / question.k), 1 / question.k
        if error > even:
            yield _caution("pairs-too-fine", q=question, devices=devices, error=error, even=even)


def _remedy(scheme: Scheme, link: LinkPlan, crowd: CrowdPlan) -> str:
    if link.trait_bits > crowd.hidden_bits:
        return "remedy turns" if scheme.takes_turns else "remedy traits"
    if not scheme.survey.longitudinal:
        return "remedy values"
    return "remedy memo" if scheme.survey.sends_memo else "remedy ratio"


def _of_fakes(scheme: Scheme) -> Found:
    survey = scheme.survey
    fakes = [question for question in scheme.questions if question.faked]
    zero = [question for question in fakes if question.fake is None]
    if zero:
        yield _caution("zero-fakes", names=_names(zero))
    if survey.solution == "rs+fd" and len(zero) < len(fakes):
        yield _caution("uniform-fakes")
    bare = [q for q in fakes if q.fake_kind == "bare" and q.fake is not None and np.ptp(q.fake) > 0]
    if bare:
        yield _caution("noiseless-fakes", names=_names(bare))
    if fakes and survey.guarantee != "tuple":
        yield _caution("amplification", survey=survey, promise=scheme.guarantees)


def _of_linking(scheme: Scheme) -> Found:
    survey, promise = scheme.survey, scheme.guarantees
    if survey.memo_cap == 1:
        without = _by(promise.without_cap.any(10))
        yield _caution("stale-answers", ten=_by(promise.any(10)), ten_without_cap=without)
    elif survey.longitudinal:
        yield _caution("visible-changes", ten=_by(promise.any(10)), promise=promise)
    lifelong = [q for q in scheme.questions if q.record.lifelong and q.mechanism.encoding.trait_count > 1]
    if lifelong:
        yield _caution("lifelong-traits", names=_names(lifelong))
    if survey.sends_memo:
        wide = [q for q in scheme.questions if q.mechanism.encoding.memo.bits >= IDENTIFYING_BITS]
        yield _caution("memo-is-sent", long=WORDS["memo-is-sent long"].format(names=_names(wide)) if wide else "")
    if survey.horizon > 1:
        yield _caution("gaps", survey=survey)
    if survey.units:
        yield _caution("flags")
    among = None if survey.devices is None else candidates(scheme, survey.devices)
    if among is not None and among < FEW_CANDIDATES:
        yield _caution("few-candidates", survey=survey, among=among)


def _by(loss: Loss) -> str:
    """How far two histories are apart, in words."""
    if loss.whole is None:
        return "without bound"
    return f"by up to {loss.whole:.3g}" if loss.exact else f"by at most {loss.whole:.3g}"


def _of_costs(scheme: Scheme) -> Found:
    survey, promise = scheme.survey, scheme.guarantees
    if promise.per_window is not None:
        twice = 2 * survey.one_in
        cost, grown = promise.any(twice).whole, survey.one_in**0.5
        yield _caution("takes-turns", survey=survey, promise=promise, twice=twice, cost=cost, grown=grown)
    elif promise.renaming is None:
        yield _caution("costs-add-up", promise=promise, cost=promise.constant(30).whole)
    elif survey.memo_cap is None:
        yield _caution("no-memo-cap", promise=promise)
    wasteful = [q for q in scheme.questions if RECORDS[q.mechanism.name].published_differs]
    if survey.calibration == "published" and survey.eps_1 is not None and wasteful:
        yield _caution("published-calibration")
    neighbours = promise.between_neighbours(1)
    if neighbours:
        unit, worst = max(neighbours.values()), max(promise.per_attribute(1))
        yield _caution("distance-only", names=", ".join(neighbours), unit=unit, worst=worst)
    for name, losses in promise.of_places().items():
        yield _caution("distance-only places", name=name, q=scheme.question(name), losses=in_words(losses))


def _of_sets(scheme: Scheme) -> Found:
    for question in (question for question in scheme.questions if question.sets and scheme.survey.longitudinal):
        moved, cost = 200 / (question.several + 1), element_loss(question.mechanism, inf)
        yield _caution("sets-change", q=question, moved=moved, cost=cost)


def _of_amounts(scheme: Scheme, devices: int) -> Found:
    for question in scheme.questions:
        errors = mean_errors(scheme, question, devices)
        if len(errors) > 1 and errors["threshold"] < errors[question.label]:
            yield _caution("amount-by-threshold", q=question, own=errors[question.label], other=errors["threshold"])


def _of_forgery(scheme: Scheme) -> Found:
    for question in (question for question in scheme.questions if not question.attribute.placed):
        weight = forged_weight(question.channel)
        if weight >= CHEAP_TO_POISON:
            yield _caution("cheap-to-poison", q=question, weight=weight)


def _of_unlisted(scheme: Scheme) -> Found:
    listed = [a for a in scheme.survey.attributes if not (a.other or a.range or a.grid or a.several)]
    if listed:
        few = min(listed, key=lambda attribute: attribute.k)
        yield _caution("unlisted-values", names=_names(listed), few=few, seen=10 / few.k)


def _of_presence(presence: PresencePlan | None, devices: int) -> Found:
    if presence is None:
        yield _caution("presence")
        return
    for name, errors in presence.attributes.items():
        if errors.if_half >= USELESS:
            yield _caution("useless-with-presence-noise", name=name, devices=devices, errors=errors)


def _names(asked: Iterable[Question | Attribute]) -> str:
    return ", ".join(each.name for each in asked)
