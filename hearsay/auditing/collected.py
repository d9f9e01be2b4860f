"""An audit of what was collected: published histograms of a data directory or of a Kafka cluster."""

from __future__ import annotations

from pathlib import Path

from analytics.integrity import ALPHA
from audit.collected import Collected, collected_figures, collected_findings, contradictions, reports_in
from audit.limits import breaches, parse_limits
from audit.report import AuditReport, PeriodIntegrity
from hearsay.reports.files import chosen, open_results
from hearsay.terminal.console import Step
from protocols.errors import ResultsError
from protocols.scheme import PRESENCE_ONLY, Scheme
from views import Histogram


def audit_collected(
    data: Path | None, kafka: str | None, survey: str | None, fail_above: str, step: Step
) -> AuditReport:
    """What the published counts of a survey say."""
    limits = parse_limits(fail_above)
    with open_results(survey, data, kafka) as (results, root):
        scheme = Scheme(chosen(results, survey))
        name = scheme.survey.id
        step(0, 1, "reading histograms")
        periods = [_collected(histogram) for histogram in results.histograms(name)]
    if not periods:
        raise ResultsError(
            f"no final result of survey {name!r} is published", "a period becomes final when it is closed"
        )
    figures = list(collected_figures(scheme, periods))
    judged = {found.period: found.integrity for found in periods if found.integrity is not None}
    return AuditReport(
        survey=name,
        fingerprint=scheme.fingerprint,
        solution=scheme.survey.solution,
        mechanisms={question.name: question.label for question in scheme.questions},
        crowd=max(1, *(reports_in(scheme, found) for found in periods)),
        attacker="best",
        alpha=ALPHA,
        seed=0,
        source=str(root) if kafka is None else kafka,
        periods=len(periods),
        figures=tuple(figures),
        findings=tuple(collected_findings(scheme, periods)),
        integrity=tuple(PeriodIntegrity(period=period, integrity=found) for period, found in judged.items()),
        breaches=(*breaches(figures, limits), *contradictions(periods)),
    )


def _collected(histogram: Histogram) -> Collected:
    known = {a.name: a.statistics for a in histogram.attributes if a.statistics is not None}
    if histogram.presence_only is not None:
        known[PRESENCE_ONLY] = histogram.presence_only
    shares = {a.name: (a.low, a.high) for a in histogram.attributes if a.low is not None and a.high is not None}
    reports = {name: (counts.gaps, counts.n.clip(0)) for name, counts in known.items()}
    return Collected(histogram.period, reports, shares, histogram.integrity)
