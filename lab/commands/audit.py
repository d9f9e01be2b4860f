"""`hearsay audit`: every attack at its best, computed and measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from hearsay.terminal import console
from hearsay.terminal.explaining import BROKEN, REFUSED

if TYPE_CHECKING:
    from rich.table import Table

    from lab.attacks.report import Attack, AuditReport, Conduct, Figure

SPACED: dict[str, Any] = {"pad_edge": True, "padding": (0, 2, 0, 0)}
CALLS = 20_000  # of a function
OF_PROGRAMS: tuple[Attack, ...] = ("guess", "place", "link", "epsilon")
"""Attacks on devices whose secrets the audit does not have."""
CONDUCT = "conduct"
"""In --only: whether devices of a program do what their survey says."""


def audit(
    survey: Annotated[str | None, typer.Argument(show_default=False)] = None,
    data: console.Data = None,
    devices: Annotated[int | None, typer.Option(min=1, show_default=False)] = None,
    periods: Annotated[int | None, typer.Option(min=1)] = None,
    scenario: str | None = None,
    csv: Path | None = None,
    background: Path | None = None,
    targets: Annotated[int, typer.Option(min=1)] = 1000,
    surveys: Annotated[int, typer.Option(min=1, max=100)] = 5,
    kafka: console.Kafka = None,
    eps: str = "",
    crowd: Annotated[int | None, typer.Option(min=1, show_default=False)] = None,
    only: str = "",
    attacker: Literal["best", "published"] = "best",
    prior: str | None = None,
    fail_above: str = "",
    alpha: Annotated[float, typer.Option(min=1e-9, max=0.5)] = 0.01,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    device: Annotated[str | None, typer.Option(metavar="COMMAND")] = None,
    function: Annotated[str | None, typer.Option(metavar="MODULE:FUNCTION")] = None,
    values: Annotated[int | None, typer.Option(min=2, max=64, metavar="N")] = None,
    promise: Annotated[float | None, typer.Option(min=0.0, metavar="EPS")] = None,
    html: Path | None = None,
    as_json: console.AsJson = False,
) -> None:
    """Attack a survey as well as anybody can, and show what the attacks reach.

    Without further options all figures are computed. With --devices, --scenario or --csv the attacks are also carried
    out, on devices that the audit makes itself: their own code, a memo store, and the wire format. Each figure stands
    beside luck, beside what the published histogram alone tells, and beside the best possible one.

    With --data, or with --kafka and the id of a survey, nothing is attacked: published counts are checked. The audit
    says of each period whether they can have come from honest devices, among how few reports one hides, and which
    claims of the survey they contradict.

    With --device the attacks are carried out on the devices of any program, and with --function on any function that
    makes a report from a value: docs/audit.md says what the audit writes to a program, and what it expects.

    Ends with code 1 if a limit of --fail-above is exceeded or a period is contradicted, and with 70 if what is
    measured contradicts what is computed: then the code of the devices is wrong, or that of the audit.

    Example: hearsay audit survey.yaml --fail-above guess=0.5,link=0.05
    """
    with console.progress("starting"):  # to import these takes seconds
        from hearsay.survey_files import read_survey
        from lab.attacks.report import ATTACKS
        from lab.auditing.auditing import Auditing, budgets
        from lab.auditing.collected import audit_collected
        from lab.documents import audit_event, show

    reports: dict[str, AuditReport] = {}  # by budget
    if eps and (html or data or survey is None or not Path(survey).exists()):
        raise typer.BadParameter("several budgets are tried on a survey file, and have no page", param_hint="--eps")
    measures = devices is not None or scenario is not None or csv is not None
    if function is not None:
        if any((survey, data, kafka, device, periods, scenario, csv, background, crowd, only, fail_above)):
            raise typer.BadParameter("a function has no survey, periods or people: leave them out")
        if values is None or promise is None:
            raise typer.BadParameter("how many values has it, and what does it promise? add --values and --promise")
        from lab.auditing.functions import audit_function, function_named

        make = function_named(function)
        with console.progress("calling") as step:
            reports[""] = audit_function(function, make, values, promise, devices or CALLS, alpha, seed, step)
    elif device is not None and (data is not None or kafka is not None):
        raise typer.BadParameter("a program has devices of its own: leave out --data and --kafka")
    elif device is not None and not measures and console.words(only) != [CONDUCT]:
        raise typer.BadParameter("a program has devices of its own: add --devices, or --only conduct")
    elif data is not None or (kafka is not None and not measures):
        if measures or periods is not None:
            raise typer.BadParameter(
                "what was collected has its own devices: leave out --devices, --scenario and --csv"
            )
        if kafka is not None and survey is not None and Path(survey).exists():
            raise typer.BadParameter("without devices nothing is measured: add --devices", param_hint="--devices")
        with console.progress("reading what was collected") as step:
            reports[""] = audit_collected(data, kafka, survey, fail_above, step)
    elif survey is None:
        raise typer.BadParameter("name a survey file, or --data and --kafka for what was collected")
    elif periods is not None and not measures and console.words(only) != [CONDUCT]:
        raise typer.BadParameter("without devices nothing is measured: add --devices", param_hint="--devices")
    elif csv is not None and (scenario is not None or devices is not None):
        raise typer.BadParameter("a table has its own people; leave out --devices and --scenario", param_hint="--csv")
    else:
        wanted = attacks(only, ATTACKS if device is None else OF_PROGRAMS)
        conducts = CONDUCT in console.words(only) or not (only or device is None or devices is None)
        shares, read = prior or ("even" if csv is None else "exact"), read_survey(Path(survey))
        terms = (crowd, wanted, attacker, shares, alpha, seed, fail_above, targets, surveys, conducts)
        for budget, one in budgets(read, eps).items():
            auditing, doing = Auditing(one, *terms), f" at eps {budget}" if budget else ""
            plan = auditing.plan(devices, periods) if conducts else None
            if plan is not None:
                _say_needs(plan)
            with console.progress(f"{'measuring' if measures else 'computing'}{doing}") as step:
                report = None
                if wanted:
                    report = auditing.run(csv, scenario, devices, periods, background, step, kafka, device)
                if plan is not None:
                    report = auditing.with_conduct(report, plan, device, step)
                assert report is not None, "--only names something"
                reports[budget] = report
    figures = {budget: report.model_dump(mode="json") for budget, report in reports.items()}
    if eps:
        show(figures, lambda: _compare(reports), as_json)
    else:
        (report,) = reports.values()
        page = f"Audit of {report.survey}", audit_event(report, bool(fail_above)), "\nThe same as a page"
        show(figures[""], lambda: _show(report, fail_above), as_json, html, *page)
    _leave(reports)


def attacks(text: str, possible: tuple[Attack, ...]) -> tuple[Attack, ...]:
    """The attacks of `--only`; all by default. Conduct is no attack."""
    wanted = console.words(text)
    for word in wanted:
        if word not in (*possible, CONDUCT):
            raise typer.BadParameter(f"{word!r} is not one of {', '.join((*possible, CONDUCT))}", param_hint="--only")
    return tuple(attack for attack in possible if not wanted or attack in wanted)


def _say_needs(plan: Conduct) -> None:
    """How many devices the audit takes, and how many each deviation needs, before any device is started."""
    console.err.print(
        f"The conduct of {plan.devices:,} devices is tested in {plan.periods} periods. All tests together refute "
        f"healthy devices with a chance of at most {plan.level:g}. A deviation is missed in at most 1 % of all audits "
        "with so many devices:",
        soft_wrap=True,
    )
    for need in plan.needs:
        enough = "" if need.devices <= plan.devices else "  (more than there are)"
        console.err.print(f"{need.devices:9,}  {need.deviation}: {need.finding}{enough}", markup=False, soft_wrap=True)


def _show_conduct(plan: Conduct) -> None:
    """The tests that were made, the oddest first."""
    left = ("test",)
    table = console.table(*left, "chance of luck", "among all", left=left, title="Conduct of devices", **SPACED)
    for test in sorted(plan.tests, key=lambda test: test.adjusted):
        style = "red" if test.adjusted <= plan.level else ""
        table.add_row(escape(test.name), f"{test.chance:.1g}", f"{test.adjusted:.1g}", style=style)
    table.caption = f"{len(plan.tests)} tests as one family (Holm): what is at most {plan.level:g} is refuted"
    console.out.print()
    console.out.print(table)


def _leave(reports: dict[str, AuditReport]) -> None:
    for budget, report in reports.items():
        at = f"eps {budget}: " if budget else ""
        for sentence in report.breaches:
            console.err.print(f"[red]not accepted:[/] {at}{escape(sentence)}", soft_wrap=True)
        for defect in report.defects:
            console.err.print(f"[red bold]defect:[/] {at}{escape(defect.text)}", soft_wrap=True)
    if any(report.defects for report in reports.values()):
        alpha = next(iter(reports.values())).alpha
        console.err.print(
            f"Without any fault this happens in at most {alpha:g} of all audits: repeat it with another --seed, "
            "or with more devices.",
            soft_wrap=True,
        )
        raise typer.Exit(BROKEN)
    if any(report.breaches for report in reports.values()):
        raise typer.Exit(REFUSED)


def _compare(reports: dict[str, AuditReport]) -> None:
    """One table: a row for each attack, and a column for each budget, with the figures that limits apply to."""
    from lab.attacks.report import EXPLAINED, shown

    table = console.table("", "reports", "luck", *(f"eps {budget}" for budget in reports), **SPACED)
    rows: dict[tuple[str, str, str, int | None], dict[str, Figure]] = {}
    for budget, report in reports.items():
        for figure in report.figures:
            rows.setdefault((figure.attack, figure.target, figure.knows, figure.reports), {})[budget] = figure
    for attack, words in EXPLAINED.items():
        some = [(key, found) for key, found in rows.items() if key[0] == attack]
        if some:
            table.add_row(f"[bold]{words['heading']}[/]")
        for (_, target, knows, seen), found in some:
            one = next(iter(found.values()))
            cells = [shown(found[budget], found[budget].value) if budget in found else "" for budget in reports]
            told = f"{escape(target)}\n[dim]{escape(knows)}[/]"
            table.add_row(told, "all" if seen is None else str(seen), shown(one, one.luck), *cells)
    console.out.print(table)
    for budget, report in reports.items():
        _show_findings(report, f"eps {budget}: ")


def _show(report: AuditReport, limits: str) -> None:
    from lab.attacks.report import EXPLAINED, worst

    asked = ", ".join(f"{name} {mechanism}" for name, mechanism in report.mechanisms.items())
    kind = f"{report.solution}: {asked}" if asked else report.solution
    console.out.print(f"[bold]{report.survey}[/] · {escape(kind)}; a crowd of {report.crowd:,}")
    for sentence in filter(None, (worst(attack, report.figures) for attack in EXPLAINED)):
        console.out.print(f"- {sentence}", markup=False)
    if limits and not report.breaches:
        console.out.print(f"No limit is exceeded: {limits}", markup=False)
    for attack, words in EXPLAINED.items():
        figures = [figure for figure in report.figures if figure.attack == attack]
        if figures:
            console.out.print()
            console.out.print(_table(words["heading"], figures))
    if report.conduct is not None and report.conduct.tests:
        _show_conduct(report.conduct)
    if report.integrity:
        console.out.print()
        console.out.print(_verdicts(report))
    _show_findings(report)


def _show_findings(report: AuditReport, at: str = "") -> None:
    for finding in report.findings:
        console.out.print(f"\n[yellow]![/] [bold]{at}{finding.code}[/]  {escape(finding.text)}", soft_wrap=False)


def _table(heading: str, figures: list[Figure]) -> Table:
    from lab.attacks.report import interval, shown

    measured = any(figure.measured is not None for figure in figures)
    columns = "", "reports", "luck", "histogram", *(["attack"] if measured else []), "best"
    table = console.table(*columns, title=heading, title_style="bold", **SPACED)
    for column in table.columns[1:4]:
        column.no_wrap = True
    for figure in figures:
        best = "" if figure.best is None else ("" if figure.exact else "~ ") + shown(figure, figure.best)
        cells = ["all" if figure.reports is None else str(figure.reports)]
        cells += [shown(figure, figure.luck), shown(figure, figure.histogram)]
        if measured:
            trials = "" if figure.trials is None else f" of {figure.trials:,.0f}"
            cells.append(f"{shown(figure, figure.measured)}\n[dim]{interval(figure)}{trials}[/]")
        table.add_row(f"{escape(figure.target)}\n[dim]{escape(figure.knows)}[/]", *cells, best)
    return table


def _verdicts(report: AuditReport) -> Table:
    """One row for each collected period: its verdict, its smallest p-value, and the forged share to be noticed."""
    left, right = ("period", "verdict"), ("smallest p", "noticed from", "claimed", "reported")
    table = console.table(*left, *right, left=left, title="Integrity", title_style="bold", **SPACED)
    for found in report.integrity:
        one = found.integrity
        checks = [check for attribute in one.attributes for check in attribute.checks.values()]
        shares = [check.smallest for check in checks if check.smallest is not None]
        flow = ("", "") if one.flow is None else (f"{one.flow.claimed:,}", f"{one.flow.reported:,}")
        least = min((check.adjusted for check in checks), default=1.0)
        style = {"consistent": "", "changed": "yellow", "contradicted": "red"}[one.verdict]
        noticed = f"{min(shares):.1%}" if shares else ""
        table.add_row(str(found.period), one.verdict, f"{least:.2g}", noticed, *flow, style=style)
    table.caption = f"p for all periods and checks; {report.alpha:.0%} is the chance of a false alarm ever"
    return table
