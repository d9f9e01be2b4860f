"""`hearsay plan`: what a survey reveals and how precise its results will be."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from hearsay.terminal import console
from hearsay.terminal.plans import areas_of, parse_wanted, summary_of, tables_of
from protocols.errors import SettingsError, SurveyError
from protocols.planning import FEWEST_CANDIDATES


def plan(
    survey: Annotated[Path, typer.Argument(show_default=False)],
    devices: Annotated[int | None, typer.Option(min=1, show_default=False)] = None,
    error: Annotated[float, typer.Option(min=1e-6, max=1.0)] = 0.01,
    wanted: Annotated[str, typer.Option(metavar="NAME=ERROR,...", show_default=False)] = "",
    drift: Annotated[list[float] | None, typer.Option(min=0.001, max=100)] = None,
    data: console.Data = None,
    kafka: console.Kafka = None,
    every: Annotated[bool, typer.Option("--all")] = False,
    as_json: console.AsJson = False,
) -> None:
    """Show what a survey reveals and how precise its results will be; and with --all which mechanisms it uses and why.

    Example: hearsay plan survey.yaml --devices 50000 --error 0.005
    """
    from hearsay.data_directory import DataDirectory
    from hearsay.survey_files import counted_at, read_survey
    from protocols.planning import DRIFTS
    from protocols.planning import plan as plan_survey
    from protocols.scheme import Scheme

    asked = read_survey(survey, counted_at(data, kafka))
    if data is not None and not data.exists():
        raise SettingsError(f"there is no data directory {data}", "name the directory of the run or replay")
    if data is not None and asked.memo_cap is not None and DataDirectory(data).loss_note.exists():
        asked = asked.model_copy(update={"memo_cap": None})
        console.err.print(
            f"The memos of {data} were lost once: devices may exceed their memo_cap, and this is the plan without it.",
            markup=False,
        )
    with console.progress("planning"):
        drawn = plan_survey(Scheme(asked), devices, error, parse_wanted(wanted), drift or DRIFTS)
        areas = None
        if asked.areas is not None:
            from hearsay.reports.areas import plan_areas

            areas = plan_areas(asked, survey, drawn.devices)
    if as_json:
        console.print_json(drawn.model_dump(mode="json") | ({} if areas is None else {"areas": areas[0]}))
    else:
        tables = tables_of(drawn, with_shares=bool(wanted or asked.crosses or asked.shares))
        mapped = () if areas is None else areas_of(*areas)
        for part in (*summary_of(drawn), *mapped, *(tables if every or wanted or drift else ())):
            console.out.print(part)
            console.out.print()
        for caution in drawn.cautions:
            console.out.print(f"[yellow]![/] [bold]{caution.code}[/]  {escape(caution.text)}", soft_wrap=False)
    among = drawn.crowd.candidates
    if asked.units and among is not None and among < FEWEST_CANDIDATES:
        raise SurveyError(
            f"survey {asked.id!r}: with {drawn.crowd.devices:,} devices, a report before another is one of {among}",
            "use longer periods or fewer attributes, or leave visitors out, until more devices report",
        )
    if not as_json:
        placed = any(attribute.grid is not None for attribute in asked.attributes)
        console.print_next("run", survey, *(["--scenario", "commuters"] if placed else []))
