"""`hearsay recover`: let workers go on that cannot read a log on, and surveys that were quarantined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from hearsay.terminal import console
from protocols.errors import StateError

if TYPE_CHECKING:
    from stream_app.faust_app import QuarantinedSurvey


def recover(
    lost: Annotated[int | None, typer.Option(metavar="REPORTS", min=0)] = None,
    partition: Annotated[list[int] | None, typer.Option(metavar="NUMBER")] = None,
    survey: Annotated[list[str] | None, typer.Option(metavar="ID")] = None,
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
) -> None:
    """Show the partitions that workers cannot read on and the surveys that are quarantined, and let them go on.

    A topic was deleted and made again, a log was cut off by an election, or records inside it are missing: workers
    stop reading such a partition, so no period of it is closed. A survey is quarantined if something went wrong with it
    alone: its reports wait in the log. Without --lost and --survey nothing is changed, and the exit code is 1 if there
    is such a partition or survey.

    With --lost, workers go on with the log as it is now. Every period that is open there is published with the
    number of reports that it may lack; results that are final do not change. This cannot be undone.

    With --survey, the reports of a survey are read again from where it was quarantined. What the log no longer has of
    them is published as its shortfall. Remove the cause first, or the survey is quarantined again.

    All workers must be stopped.

    Example: hearsay recover --lost 500
    """
    from servers.settings import load
    from stream_app.faust_app import quarantined_surveys, stuck_partitions, write_state
    from stream_app.kafka import existing

    settings = load().at(kafka).kafka
    topics = existing(settings)
    with console.progress("comparing the state with the logs"):
        stuck, quarantined = stuck_partitions(settings, topics), quarantined_surveys(settings, topics)
    if partition:
        stuck = [one for one in stuck if one.partition in partition]
        quarantined = [one for one in quarantined if one.partition in partition]
    resumed = [one for one in quarantined if one.survey in (survey or ())]
    unknown = set(survey or ()) - {one.survey for one in quarantined}
    if unknown:
        raise StateError(
            f"not quarantined: {', '.join(sorted(unknown))}", "run `hearsay recover` to see which surveys are"
        )
    decided = [one.resumption for one in resumed]
    if lost is not None:
        decided += [one.accepted(lost) for one in stuck]
    if decided:
        with console.progress("letting workers go on"):
            write_state(settings, topics, decided)
    if as_json:
        found = [
            {"topic": one.topic, "partition": one.partition, "fault": one.fault.kind.value, "what": one.fault.what}
            for one in stuck
        ]
        kept = [
            {"survey": one.survey, "topic": one.topic, "partition": one.partition, "why": one.quarantine.why}
            for one in quarantined
        ]
        accepted = {"accepted": lost is not None, "lost": lost}
        console.print_json(
            {"stuck": found, **accepted, "quarantined": kept, "resumed": sorted({r.survey for r in resumed})}
        )
    elif not stuck:
        console.out.print("[green]✓[/] every log is the one that was read, as far as it was read")
    else:
        table = Table("topic", "partition", Column("what is wrong", overflow="fold"), box=None, pad_edge=False)
        for one in stuck:
            table.add_row(escape(one.topic), str(one.partition), escape(one.fault.what))
        console.out.print(table)
        if lost is None:
            console.out.print("\nWorkers go on after: hearsay recover --lost REPORTS (at most so many are lost)")
        else:
            console.out.print(
                f"\n[green]✓[/] started workers go on; in each of these at most {lost:,} reports are lost"
            )
    if quarantined and not as_json:
        _show_quarantined(quarantined, resumed)
    if (stuck and lost is None) or len(resumed) < len(quarantined):
        raise typer.Exit(1)


def _show_quarantined(quarantined: list[QuarantinedSurvey], resumed: list[QuarantinedSurvey]) -> None:
    table = Table(
        "survey", "topic", "partition", Column("why it is quarantined", overflow="fold"), box=None, pad_edge=False
    )
    for one in quarantined:
        table.add_row(escape(one.survey), escape(one.topic), str(one.partition), escape(one.quarantine.why))
    console.out.print()
    console.out.print(table)
    if resumed:
        names = ", ".join(sorted({one.survey for one in resumed}))
        console.out.print(f"\n[green]✓[/] started workers read the reports of {escape(names)} again")
    else:
        console.out.print("\nA survey goes on after: hearsay recover --survey ID (remove the cause first)")
