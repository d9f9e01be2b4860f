"""Documents that are pages of their own, as events: an audit, and evaluations; and how commands show them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hearsay.terminal import console
from lab.attacks.report import ATTACKS, EXPLAINED, AuditReport, worst
from lab.evaluation.measuring import Outcome, Score
from pages.events import Event, Record, event
from pages.static import static_page
from protocols.errors import counted


def show(
    figures: Any,
    tables: Callable[[], None],
    as_json: bool,
    html: Path | None = None,
    title: str = "",
    document: Event | None = None,
    said: str = "Charts",
) -> None:
    """Print figures. A page is written last: they are shown even if the file cannot be written."""
    if as_json:
        console.print_json(figures)
    else:
        tables()
    if html is not None and document is not None:
        html.write_text(static_page(title, [document]), encoding="utf-8")
        if not as_json:
            console.out.print(f"{said}: {html}", soft_wrap=True, markup=False)


def audit_event(report: AuditReport, limited: bool = False) -> Event:
    """The event of an audit: everything its page says. `limited`: limits were given, so there is a verdict."""
    asked = ", ".join(f"{name} ({mechanism})" for name, mechanism in report.mechanisms.items())
    measured = "All figures are computed; nothing was measured."
    if report.devices is not None:
        measured = (
            f"Measured with {counted(report.devices, 'device')} of the audit's own in "
            f"{counted(report.periods or 0, 'period')} (values: {report.source}; "
            f"reports: through {report.path}). No data of real devices was used."
        )
    attacks = []
    for attack in ATTACKS:
        figures = [figure for figure in report.figures if figure.attack == attack]
        if figures:
            words = EXPLAINED[attack]
            shown = [figure.model_dump(mode="json") | {"value": figure.value} for figure in figures]
            said = worst(attack, figures)
            attacks.append({"attack": attack, **words, "worst": said, "figures": shown})
    record: Record = {
        "title": f"Audit of {report.survey}",
        "lead": [f"One device hides among {report.crowd:,}. {measured}"],
        "asked": f"{report.solution}: {asked}.",
        "limited": limited,
        "defects": [defect.text for defect in report.defects],
        "breaches": list(report.breaches),
        "findings": [finding.model_dump() for finding in report.findings if not finding.defect],
        "attacks": attacks,
        "terms": f"Intervals are exact (Clopper and Pearson) and hold with {1 - report.alpha:.3g} each; of people in "
        f"another table, they follow from the spread between runs. Ties are shared. Attacker: "
        f"{report.attacker}. Seed {report.seed}. Fingerprint of the survey: {report.fingerprint}.",
    }
    return event("audit", report.survey, record)


def evaluation_event(facts: Mapping[str, Any], outcomes: Sequence[Outcome]) -> Event:
    """The event of an evaluation; `facts` describes the measurement (source, attributes, people, alpha, runs)."""
    people = facts["people"]
    attributes = ", ".join(f"{name} ({k})" for name, k in facts["attributes"].items())
    record: Record = {
        "title": "Errors of methods where the truth is known",
        "lead": [
            f"Measured on {facts['source']}: {sum(people):,} reports in {len(people)} period(s), {facts['runs']} "
            f"run(s), eps_1 = {facts['alpha']:g} eps_inf. Attributes (numbers of values): {attributes}."
        ],
        "scores": [],
        "infeasible": [outcome.record() for outcome in outcomes if not isinstance(outcome, Score)],
    }
    for score in (outcome for outcome in outcomes if isinstance(outcome, Score)):
        name, terms = score.method.name, score.method.terms
        label = name if terms in ("exact", "tuple") else f"{name}, {terms}"
        more = {"label": label, "solution": score.method.solution, "headline": score.headline}
        record["scores"].append(score.record() | more)
    return event("evaluation", None, record)


def learning_event(facts: Mapping[str, Any], learnt: Sequence[Record]) -> Event:
    """The event of an evaluation of what can be learnt; `facts` describes the measurement."""
    attributes = ", ".join(f"{name} ({k})" for name, k in facts["attributes"].items())
    rounds = "one report each" if facts["alpha"] is None else f"eps_1 = {facts['alpha']:g} eps_inf"
    record: Record = {
        "title": f"What a classifier learns about {facts['label']}",
        "lead": [
            f"Measured on {facts['source']}: {facts['people']:,} people answer, {rounds}, {facts['runs']} run(s); "
            f"tried on {facts['tried_on']:,} others. Each attribute is asked together with the label. Attributes "
            f"(numbers of values): {attributes}."
        ],
        "sensitive": facts["sensitive"],
        "learnt": learnt,
    }
    return event("learning", None, record)
