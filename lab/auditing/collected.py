"""What collected counts say: integrity of each period, among how many reports one hides, and claims that do not hold.

Only published counts are used, never single reports. Gaps tell how many reports may be the one before (docs/audit.md,
section 7): a report of period t with gap g below the horizon follows one of the reports of period t - g, each of them
alike. So what narrows the crowd is not a rare gap but a small period: of the same attribute under smp, and of the same
hash.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from analytics.integrity import ALPHA, MEANINGS, Integrity
from hearsay.reports.files import chosen, open_results
from hearsay.terminal.console import Step
from lab.attacks.forging import cheapest, forgery_gain
from lab.attacks.report import AuditReport, Figure, Finding, PeriodIntegrity, plain
from protocols.arrays import Whole
from protocols.errors import ResultsError
from protocols.privacy import evidence, hidden_bits, trait_values
from protocols.scheme import PRESENCE_ONLY, Scheme
from views.results import Histogram

CODES = {"flow": "forged-returners", "jump": "changed"}
FEW = 100  # candidates below which a crowd is small
WORST = 0.05  # the share of reports that have the fewest candidates

Candidates = Mapping[str, list[tuple[int, int]]]  # by crowd: candidates, and how many reports have so many; ascending


def divided(scheme: Scheme) -> bool:
    """Whether every attribute has a crowd of its own: under smp, unless reports may answer nothing."""
    return scheme.discloses and not scheme.takes_turns


def followed(scheme: Scheme, periods: Sequence[Histogram]) -> Candidates:
    """Among how many reports the one before is, of every report with a gap below the horizon.

    If there is one crowd, the first attribute stands for all.
    """
    visits, found = scheme.visits, dict[str, list[tuple[int, int]]]()
    if scheme.survey.releases_windows:  # reports by gap or flags are not published
        return found
    known = {histogram.period: counted(histogram) for histogram in periods}
    for question in scheme.questions if divided(scheme) else scheme.questions[:1]:
        name = question.name
        there = {period: int(counts[name][1].sum()) for period, counts in known.items() if name in counts}
        among = Counter[int]()
        for period in there:
            for gap, count in zip(*(column.tolist() for column in known[period][name]), strict=True):
                if count > 0 and (before := visits.previous(gap, period)):
                    size = sum(there.get(earlier, 0) for earlier in before) // trait_values(question)
                    among[max(1, size)] += count
        if among:
            found[name] = sorted(among.items())
    return found


def audit_collected(
    data: Path | None, kafka: str | None, survey: str | None, fail_above: str, step: Step
) -> AuditReport:
    """What the published counts of a survey say, in a data directory or on a Kafka cluster."""
    with open_results(survey, data, kafka) as (results, root):
        scheme = Scheme(chosen(results, survey))
        step(0, 1, "reading histograms")
        periods = results.histograms(scheme.survey.id)
    if not periods:
        raise ResultsError(
            f"no final result of survey {scheme.survey.id!r} is published", "a period becomes final when it is closed"
        )
    judged = [(histogram.period, histogram.integrity) for histogram in periods if histogram.integrity is not None]
    alarms = {period: {check for _, check in one.alarms} for period, one in judged if one.verdict == "contradicted"}
    checks = {period: ", ".join(sorted(found - {"jump"})) for period, found in alarms.items()}
    before = followed(scheme, periods)
    return AuditReport.of(
        scheme,
        collected_figures(scheme, before, judged[-1][1] if judged else None),
        collected_findings(scheme, before, periods),
        fail_above,
        tuple(f"period {period} does not fit honest devices: {names}" for period, names in checks.items()),
        crowd=max(1, *(reports_in(scheme, histogram) for histogram in periods)),
        attacker="best",
        alpha=ALPHA,
        seed=0,
        source=str(root) if kafka is None else kafka,
        periods=len(periods),
        integrity=tuple(PeriodIntegrity(period=period, integrity=integrity) for period, integrity in judged),
    )


def collected_figures(scheme: Scheme, before: Candidates, last: Integrity | None) -> Iterator[Figure]:
    """The chance to name the report before, of the reports that are worst off; and the gain of unnoticed forgers.

    These stay below the share that would be noticed, and take care of widths, if any.
    """
    for name, pairs in before.items():
        reached = np.cumsum([count for _, count in pairs])
        among = pairs[int(np.searchsorted(reached, WORST * reached[-1]))][0]
        target, says = name if divided(scheme) else "a whole report", scheme.visits.column
        knows = f"the {says}, and how many reported before (worst {WORST:.0%} of the reports)"
        yield plain("link", target, knows, 2, 1 / among, luck=1 / among)
    for question in scheme.questions:
        found = None if last is None else last.attribute(question.name)
        share = None if found is None else (found.widths or found.negativity).smallest
        if share is not None:
            gain = share * forgery_gain(question, np.array([cheapest(question)]), "best")
            knows = f"just under {share:.1%} of the last period's reports: may stay unnoticed"
            yield plain("forge", question.name, knows, 1, gain, exact=False)


def collected_findings(scheme: Scheme, before: Candidates, periods: Sequence[Histogram]) -> Iterator[Finding]:
    """Claims that the data contradict, and crowds that are small."""
    if (noise := scheme.presence) is not None:
        text = (
            f"All counts have noise (presence_epsilon: {noise.epsilon:g}). This audit sees counts with noise: whether "
            "devices are honest is not judged."
        )
        yield Finding(code="noised-counts", text=text)
    for histogram in periods:
        if histogram.integrity is not None:
            for name, check in histogram.integrity.alarms:
                where = f"period {histogram.period}" + (f", {name}" if name else "")
                yield Finding(code=CODES.get(check, "contradicted"), text=f"{where}: {MEANINGS[check]}.")
    for name, pairs in before.items():
        if pairs[0][0] < FEW:
            few = sum(count for among, count in pairs if among < FEW)
            text = (
                f"{name}: {few:,} of {sum(count for _, count in pairs):,} reports that have one before "
                f"them follow one of fewer than {FEW} reports (the fewest: {pairs[0][0]})."
            )
            yield Finding(code="small-crowd", text=text)
    yield from _crowd(scheme, periods)
    yield from _priors(scheme, periods)


def counted(histogram: Histogram) -> dict[str, tuple[Whole, Whole]]:
    """Gaps, and reports with each: of attributes, and of reports that answer nothing."""
    known = {attribute.name: attribute.statistics for attribute in histogram.attributes}
    known[PRESENCE_ONLY] = histogram.presence_only
    return {name: (counts.gaps, counts.n.clip(0)) for name, counts in known.items() if counts is not None}


def _crowd(scheme: Scheme, periods: Sequence[Histogram]) -> Iterator[Finding]:
    """Whether those who report hide a device as well as the declared number of devices would."""
    declared = scheme.survey.devices
    sizes = [reports_in(scheme, histogram) for histogram in periods]
    if declared is None or not sizes:
        return
    crowd = int(np.median(sizes))
    reports = evidence(scheme.questions, scheme.discloses, scheme.survey.longitudinal, scheme.survey.one_in)
    for report in reports:
        if crowd and report.links(crowd) and not report.links(declared):
            names = ", ".join(question.name for question in report.questions)
            text = (
                f"{names}: two reports of a device have {report.bits:.3g} bits in common. {declared:,} devices, as "
                f"declared, would hide that; the {crowd:,} that report in a period hide {hidden_bits(crowd):.3g}."
            )
            yield Finding(code="crowd-below-claim", text=text)


def reports_in(scheme: Scheme, histogram: Histogram) -> int:
    """All reports of a period, as far as they are published."""
    return sum(int(reports.sum()) for kind, (_, reports) in counted(histogram).items() if kind in scheme.kinds)


def _priors(scheme: Scheme, periods: Sequence[Histogram]) -> Iterator[Finding]:
    """Priors from which fakes are drawn, against what was estimated: the further off, the better fakes are told apart.

    A prior is off if it is outside the intervals of most periods; of those that are right, one in twenty is.
    """
    for question in scheme.questions:
        prior, name = question.attribute.prior, question.name
        shares = [one for histogram in periods for one in histogram.attributes if one.name == name]
        seen = [(one.low, one.high) for one in shares if one.low is not None and one.high is not None]
        if prior is None or not question.faked or not seen:
            continue
        declared = np.array([prior[value] for value in question.attribute.values])
        outside = np.mean([(declared < low) | (declared > high) for low, high in seen], axis=0)
        if (outside > 0.5).any():
            values = ", ".join(np.array(question.attribute.values)[outside > 0.5][:5])
            yield Finding(
                code="prior-off", text=f"{question.name}: the prior does not fit what was estimated: {values}."
            )
