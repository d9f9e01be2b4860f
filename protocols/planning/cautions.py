"""Cautions for the author of a survey: each has a code, what holds, and what to do about it."""

from collections.abc import Iterator
from math import inf

import numpy as np

from protocols.mechanisms.catalogue import RECORDS
from protocols.planning.links import CrowdPlan, LinkPlan
from protocols.planning.precision import PlanModel, PresencePlan, standard_error
from protocols.planning.visits import candidates
from protocols.privacy.guarantees import Guarantees
from protocols.privacy.linked import element_loss
from protocols.privacy.loss import Loss, in_words
from protocols.privacy.risk import forged_weight
from protocols.question import Question
from protocols.scheme import Scheme

CHEAP_TO_POISON = 20  # people that a forged report may count for without a caution
FEW_CANDIDATES, FEWEST_CANDIDATES = 20, 5  # for the report before another one: below them a caution, an error
IDENTIFYING_BITS = 32  # of a memo that is sent as it is

Found = Iterator[tuple[str, str]]


class Caution(PlanModel):
    """Something about this survey that is easily overlooked."""

    code: str
    text: str


def cautions(scheme: Scheme, crowd: CrowdPlan, presence: PresencePlan | None) -> tuple[Caution, ...]:
    """Every caution that applies."""
    found = [*_of_crosses(scheme, crowd.devices)]
    looks = (_of_fakes, _of_linking, _of_costs, _of_sets, _of_forgery, _of_unlisted)
    found += [*_of_crowds(scheme, crowd), *(item for look in looks for item in look(scheme))]
    found += _of_presence(presence, crowd.devices)
    return tuple(Caution(code=code, text=" ".join(text.split())) for code, text in found)


def _of_crowds(scheme: Scheme, crowd: CrowdPlan) -> Found:
    reports = crowd.attributes if crowd.report is None else {"a whole report": crowd.report}
    for name, link in reports.items():
        if link.links:
            bits = link.answer_bits + link.trait_bits
            text = f"""{name}: two reports of one device have {bits:.3g} bits in common ({link.answer_bits:.3g} of their
                answers, {link.trait_bits:.3g} of what the device keeps for life); a crowd of {crowd.devices:,} hides
                {crowd.hidden_bits:.3g}. The first guess of which report is the same device's is right in
                {100 * link.first_guess:.2g} % (by chance {100 * link.luck:.2g} %). {_remedy(scheme, link, crowd)}"""
            yield "link-by-answer", text


def _of_crosses(scheme: Scheme, devices: int) -> Found:
    for question in filter(lambda question: question.axes, scheme.questions):
        error = standard_error(scheme, question, devices, 1 / question.k)
        if error > 1 / question.k:
            text = f"""{question.name}: with {devices:,} devices a pair has a standard error of {error:.2g}, and the
                mean share of a pair is {1 / question.k:.2g}: single pairs cannot be told from nothing. Ask fewer
                values, give it a larger share, use more devices or longer periods. Groups of many pairs may still be
                seen."""
            yield "pairs-too-fine", text


def _remedy(scheme: Scheme, link: LinkPlan, crowd: CrowdPlan) -> str:
    if link.trait_bits > crowd.hidden_bits:
        places = " use a smaller one_in, or" if scheme.takes_turns else ""
        return f"Use a mechanism without hashes or buckets, or ask fewer attributes under smp,{places} more devices."
    if not scheme.survey.longitudinal:
        return "The values themselves link: use fewer values."
    if scheme.survey.sends_memo:
        return "Declare eps_1: then fresh noise covers the memo."
    return """Widen the ratio of eps_inf to eps_1: one report stays as exact, but an observer who links a device's
        reports by other means learns more (eps_inf). Or use fewer values, l-grr, or loloha."""


def _of_fakes(scheme: Scheme) -> Found:
    survey = scheme.survey
    fakes = [question for question in scheme.questions if question.faked]
    zero = [question for question in fakes if question.fake is None]
    if zero:
        text = f"""{_names(zero)}: fakes are zero vectors, which have fewer bits set than true answers, so the
            attribute that is true can be guessed. Use oue-r, or rs+rfd with a prior."""
        yield "zero-fakes", text
    if survey.solution == "rs+fd" and len(zero) < len(fakes):
        text = """Fakes are drawn evenly. Where true values are skewed, frequent ones point at the attribute that is
            true. Use rs+rfd with a prior close to the data."""
        yield "uniform-fakes", text
    bare = [q for q in fakes if q.fake_kind == "bare" and q.fake is not None and np.ptp(q.fake) > 0]
    if bare:
        text = f"""{_names(bare)}: fakes are drawn from the prior without noise, and true answers have noise. So rare
            values point at the attribute that is true, however good the prior is. Use grr-r, oue-r or sue-r."""
        yield "noiseless-fakes", text
    if fakes and survey.guarantee != "tuple":
        promise = scheme.guarantees.per_report
        text = f"""guarantee: {survey.guarantee} protects one attribute at a time. Two people who differ in several
            are distinguished by up to {promise.whole:.3g} per report, not {promise.attribute:.3g}; and the true
            attribute is drawn once, so further values (or reports, without memos) are not amplified. Use guarantee:
            tuple if whole profiles must be protected."""
        yield "amplification", text


def _of_linking(scheme: Scheme) -> Found:
    survey = scheme.survey
    if survey.memo_cap == 1:
        yield "stale-answers", _held(scheme.guarantees)
    elif survey.longitudinal:
        text = f"""An observer who can link a device's reports sees when its value changed and when it came back;
            memos do not hide that. Ten linked reports separate two histories {_by(scheme.guarantees.any(10))}, not by
            {scheme.guarantees.for_ever.whole:.3g} as while the value stays. Tokens do not link reports; addresses and
            accounts do, so keep reports apart from them. Where values change often and reports can be linked, use eps
            with one_in instead of memos."""
        yield "visible-changes", text
    lifelong = [q for q in scheme.questions if q.record.lifelong]
    if lifelong:
        text = f"""{_names(lifelong)}: every report shows the device's hash or buckets, which never change. That links
            reports, up to the size of the family."""
        yield "lifelong-traits", text
    if survey.sends_memo:
        wide = [q for q in scheme.questions if q.mechanism.encoding.memo.bits >= IDENTIFYING_BITS]
        names = f"For {_names(wide)} it is long enough to identify a device." if wide else ""
        text = f"""Without eps_1 the memo itself is sent in every period: the same answer again links reports. {names}
            Declare eps_1 unless that is acceptable."""
        yield "memo-is-sent", text
    if survey.horizon > 1:
        text = f"""Each report contains how many periods ago its device last reported, up to {survey.horizon}. That
            has no noise. A gap below {survey.horizon} names the period of the previous report, which is one of that
            period's: the fewer reports a period has, the better that links. Keep the horizon as short as the windows
            you publish."""
        yield "gaps", text
    if survey.units:
        text = """Each report contains whether it is its device's first one of the calendar units that are counted. That
            has no noise. Reports that are not the first follow one of the same unit: the fewer reports a period has,
            the better that links."""
        yield "flags", text
    among = None if survey.devices is None else candidates(scheme, survey.devices)
    if among is not None and among < FEW_CANDIDATES:
        text = f"""With {survey.devices:,} devices, the report before another one is among {among}: whoever sees all
            reports can follow devices from period to period. Use longer periods, fewer attributes, or neither a horizon
            nor visitors, until more devices report."""
        yield "few-candidates", text


def _held(promise: Guarantees) -> str:
    return f"""memo_cap: 1: a device answers with the memo of its first value for good, so answers become stale when
        values change. In return, ten linked reports separate any two histories {_by(promise.any(10))}. That is void
        once a loss of the memo store was accepted (`hearsay memo accept-loss`): then it is
        {_by(promise.without_cap.any(10))}."""


def _by(loss: Loss) -> str:
    """How far two histories are apart, in words."""
    if loss.whole is None:
        return "without bound"
    return f"by up to {loss.whole:.3g}" if loss.exact else f"by at most {loss.whole:.3g}"


def _of_costs(scheme: Scheme) -> Found:
    survey, promise = scheme.survey, scheme.guarantees
    total = promise.renaming
    if promise.per_window is not None:
        text = f"""A device answers in one of {survey.one_in} periods, and not at all if it is absent then. Any
            {survey.one_in} consecutive periods cost {promise.per_window.whole:.3g} between any two histories;
            {2 * survey.one_in} cost {promise.any(2 * survey.one_in).whole:.3g}, and so on. A period has the answers of
            one in {survey.one_in} devices, so errors are about {survey.one_in**0.5:.2g} times as large as if all
            answered."""
        yield "takes-turns", text
    elif total is None:
        text = f"""Nothing is memoised: each report costs {promise.per_report.whole:.3g} again,
            {promise.constant(30).whole:.3g} after 30. Use eps_inf for anything that repeats; where values change
            often and reports can be linked, set one_in: w, so that eps covers any w consecutive periods."""
        yield "costs-add-up", text
    elif survey.memo_cap is None:
        text = f"""Every new value costs again: a device that takes them all reveals up to {total.whole:.3g}, between
            histories that are equal up to a renaming of values. memo_cap lowers this figure. Only memo_cap: 1 also
            bounds what any two histories reveal, and then answers become stale; eps with one_in bounds it in any
            one_in consecutive periods."""
        yield "no-memo-cap", text
    wasteful = [q for q in scheme.questions if RECORDS[q.mechanism.name].published_differs]
    if survey.calibration == "published" and survey.eps_1 is not None and wasteful:
        text = """calibration: published leaves part of eps_1 unused, most of it for large domains. Use it to reproduce
            tables, exact to collect."""
        yield "published-calibration", text
    neighbours = promise.between_neighbours(1)
    if neighbours:
        unit, worst = max(neighbours.values()), max(promise.per_attribute(1))
        text = f"""{", ".join(neighbours)}: the geometric mechanism protects nearness. One report separates
            neighbours by {unit:.3g}, but the ends of the range by up to {worst:.3g}."""
        yield "distance-only", text
    for name, losses in promise.of_places().items():
        text = f"""{name}: {scheme.question(name).label} protects nearness: {in_words(losses)}. In which town or
            district somebody is, is not hidden, and places of several periods together name a person."""
        yield "distance-only", text


def _of_sets(scheme: Scheme) -> Found:
    for question in (question for question in scheme.questions if question.several > 1 and scheme.survey.longitudinal):
        several, cost = question.several, element_loss(question.mechanism, inf)
        text = f"""{question.name}: when one value of a set is replaced, the memo changes in {200 / (several + 1):.2g} %
            of the cases, and who links reports sees that. Every further element that is drawn costs {cost:.3g}, not
            {question.budget.inf:.3g}. For sets that change every few weeks or more often, use eps with one_in: a
            plan shows the errors of its nowcasts beside those of memos."""
        yield "sets-change", text


def _of_forgery(scheme: Scheme) -> Found:
    for question in (question for question in scheme.questions if not question.attribute.placed):
        weight = forged_weight(question.channel)
        if weight >= CHEAP_TO_POISON:
            text = f"""{question.name}: with {question.label} at {question.k} values one forged report counts like
                {weight:.0f} people. Use a unary mechanism, or fewer values."""
            yield "cheap-to-poison", text


def _of_unlisted(scheme: Scheme) -> Found:
    listed = [a for a in scheme.survey.attributes if not (a.other or a.range or a.grid or a.several)]
    if listed:
        few = min(listed, key=lambda attribute: attribute.k)
        text = f"""{", ".join(a.name for a in listed)}: a device whose value is not listed answers with one of the
            values, drawn evenly for life, because silence would tell. That adds u (1/k - f) to the share of a value,
            with u the share of such devices, k the number of values and f the value's share among the other devices: at
            u = 10 % a value of {few.name} that nobody has appears to have {10 / few.k:.2g} %. No estimate can correct
            it. List all values, or name one of them as `other`."""
        yield "unlisted-values", text


def _of_presence(presence: PresencePlan | None, devices: int) -> Found:
    if presence is None:
        text = """The number of devices that report is published exactly and is not private. Set presence_epsilon to
            publish it with noise."""
        yield "presence", text
        return
    for name, errors in presence.attributes.items():
        if errors.useless:
            text = f"""{name}: the noise of presence_epsilon makes its answers useless. With {devices:,} devices a share
                has a standard error of {errors.if_half:.2g}: its interval is as wide as everything it can be. One
                report may support {errors.largest} values, and the noise must cover them all. Leave presence_epsilon
                out and set minimum instead: then nothing is published about few devices, and the numbers of many are
                exact. Or use grr, whose reports support one value, a larger presence_epsilon, or more devices."""
            yield "useless-with-presence-noise", text


def _names(questions: list[Question]) -> str:
    return ", ".join(question.name for question in questions)
