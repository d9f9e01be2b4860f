"""`hearsay audit`: every attack at its best, computed and measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from hearsay.terminal import console
from hearsay.terminal.exits import BROKEN, REFUSED

if TYPE_CHECKING:
    from audit.report import Attack, AuditReport, Figure
    from hearsay.auditing.auditing import Auditing

PERIODS = 10
HEADINGS = {
    "guess": "Guessing a value",
    "which": "Finding the true attribute among fakes",
    "link": "Recognising a device by its answers",
    "reidentify": "Finding people in another table",
    "epsilon": "Loss: ln of the largest likelihood ratio",
    "forge": "Forging: how far an estimate moves",
}


def audit(
    survey: Annotated[Path, typer.Argument(help="The survey file (YAML).", show_default=False)],
    devices: Annotated[
        int | None, typer.Option(min=1, help="Measure too, with so many devices.", show_default=False)
    ] = None,
    periods: Annotated[int | None, typer.Option(min=1, help="... that report in so many periods. [10]")] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Whose values they have: steady (they never change), telemetry, virtual-humans or commuters. [steady]"
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="... or a table with one row per person and a column per attribute.")
    ] = None,
    background: Annotated[
        Path | None,
        typer.Option(help="The table in which people are looked for; by default that of the devices themselves."),
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Send the reports through this Kafka cluster, and read them back."),
    ] = None,
    crowd: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of devices that hide one; by default the survey's, or 10,000.", show_default=False
        ),
    ] = None,
    only: Annotated[str, typer.Option(help="Only these attacks: guess, which, link, reidentify, epsilon, forge.")] = "",
    attacker: Annotated[
        Literal["best", "published"], typer.Option(help="best, or the weaker attackers of the literature beside it.")
    ] = "best",
    prior: Annotated[
        str, typer.Option(help="What the attacker knows of the shares: even, published, or a JSON file of shares.")
    ] = "even",
    fail_above: Annotated[
        str, typer.Option(help="Limits, such as guess=0.5,link=+0.01,epsilon=+0: end with code 1 if one is exceeded.")
    ] = "",
    alpha: Annotated[float, typer.Option(min=1e-9, max=0.5, help="The chance that an interval is wrong.")] = 0.01,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the measured devices.")] = 0,
    as_json: console.AsJson = False,
) -> None:
    """Attack a survey as well as anybody can, and show what the attacks reach.

    Without further options all figures are computed. With --devices, --scenario or --csv the attacks are also carried
    out, on devices that the audit makes itself: their own code, a memo store, and the wire format. Each figure stands
    beside luck, beside what the published histogram alone tells, and beside the best possible one.

    Ends with code 1 if a limit of --fail-above is exceeded, and with 70 if a measured figure contradicts what is
    computed: then our own code is wrong.

    Example: hearsay audit survey.yaml --fail-above guess=0.5,link=0.05
    """
    from hearsay.auditing.auditing import Auditing
    from hearsay.survey_files import read_survey

    auditing = Auditing(read_survey(survey), crowd, attacks(only), attacker, prior, alpha, seed, fail_above)
    if devices is None and scenario is None and csv is None:
        if kafka is not None or periods is not None:
            raise typer.BadParameter("without devices nothing is measured: add --devices", param_hint="--devices")
        report = auditing.computed()
    else:
        report = _measured(auditing, devices, periods, scenario, csv, kafka, background)
    _show(report, as_json)
    _leave(report)


def _measured(
    auditing: Auditing,
    devices: int | None,
    periods: int | None,
    scenario: str | None,
    csv: Path | None,
    kafka: str | None,
    background: Path | None,
) -> AuditReport:
    from hearsay.auditing.devices import InProcess, ThroughKafka, short_lived_store
    from hearsay.auditing.populations import STEADY, Rows, named, read_rows
    from hearsay.running.seeded_keyrings import seeded_keyring
    from servers.settings import load

    if csv is not None and (scenario is not None or devices is not None):
        raise typer.BadParameter("a table has its own people; leave out --devices and --scenario", param_hint="--csv")
    with console.progress("measuring") as step, short_lived_store() as store:
        if csv is not None:
            people: Any = Rows(auditing.survey, csv, periods or PERIODS)
        else:
            lived = periods if scenario not in (None, STEADY) else periods or PERIODS
            people = named(auditing.survey, scenario or STEADY, devices, lived, auditing.seed)
        keyring = seeded_keyring(auditing.seed)
        way = InProcess(store, keyring) if kafka is None else ThroughKafka(store, keyring, load().at(kafka))
        known = None if background is None else read_rows(auditing.survey, background)
        return auditing.measured(people, way, step, known)


def attacks(text: str) -> tuple[Attack, ...]:
    """The attacks of `--only`; all by default."""
    from audit.report import ATTACKS

    wanted = [word.strip() for word in text.split(",") if word.strip()]
    for word in wanted:
        if word not in ATTACKS:
            raise typer.BadParameter(f"{word!r} is not one of {', '.join(ATTACKS)}", param_hint="--only")
    return tuple(attack for attack in ATTACKS if not wanted or attack in wanted)


def _leave(report: AuditReport) -> None:
    for sentence in report.breaches:
        console.err.print(f"[red]above its limit:[/] {escape(sentence)}", soft_wrap=True)
    for defect in report.defects:
        console.err.print(f"[red bold]defect:[/] {escape(defect.text)}", soft_wrap=True)
    if report.defects:
        raise typer.Exit(BROKEN)
    if report.breaches:
        raise typer.Exit(REFUSED)


def _show(report: AuditReport, as_json: bool) -> None:
    if as_json:
        console.print_json(report.model_dump(mode="json"))
        return
    asked = ", ".join(f"{name} {mechanism}" for name, mechanism in report.mechanisms.items())
    console.out.print(f"[bold]{report.survey}[/] · {report.solution}: {escape(asked)}; a crowd of {report.crowd:,}")
    for attack, heading in HEADINGS.items():
        figures = [figure for figure in report.figures if figure.attack == attack]
        if figures:
            console.out.print()
            console.out.print(_table(heading, figures))
    for finding in report.findings:
        console.out.print(f"\n[yellow]![/] [bold]{finding.code}[/]  {escape(finding.text)}", soft_wrap=False)


def _table(heading: str, figures: list[Figure]) -> Table:
    table = Table(title=heading, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    measured = any(figure.measured is not None for figure in figures)
    found = ("attack", "interval", "trials") if measured else ()
    columns = ("target", "the attacker knows", "reports", "luck", "histogram", *found, "best")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < 2 else "right", no_wrap=place == 0)
    for figure in figures:
        shown = [number(figure, figure.luck), number(figure, figure.histogram)]
        if measured:
            trials = "" if figure.trials is None else f"{figure.trials:,.0f}"
            shown += [number(figure, figure.measured), interval(figure), trials]
        best = number(figure, figure.best) if figure.exact else f"~ {number(figure, figure.best)}"
        reports = "all" if figure.reports is None else str(figure.reports)
        table.add_row(escape(figure.target), escape(figure.knows), reports, *shown, "" if figure.best is None else best)
    return table


def number(figure: Figure, value: float | None) -> str:
    """A figure in its unit."""
    if value is None:
        return ""
    if figure.unit == "chance":
        return f"{100 * value:.2f} %" if value >= 1e-3 or value == 0 else f"{100 * value:.1e} %"
    return f"{value:+.4f}" if figure.unit == "share" else f"{value:.3f}"


def interval(figure: Figure) -> str:
    if figure.low is None:
        return ""
    if figure.high is None:
        return f"at least {number(figure, figure.low)}"
    return f"{number(figure, figure.low)} to {number(figure, figure.high)}"
