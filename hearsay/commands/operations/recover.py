"""`hearsay recover`: let workers go on that cannot read a log on, and surveys that were quarantined."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from hearsay.terminal import console
from protocols.errors import SettingsError, StateError

if TYPE_CHECKING:
    from stream_app.faust_app import QuarantinedSurvey
    from stream_app.local import DamagedLog


def recover(
    lost: Annotated[int | None, typer.Option(metavar="REPORTS", min=0)] = None,
    partition: Annotated[list[int] | None, typer.Option(metavar="NUMBER")] = None,
    survey: Annotated[list[str] | None, typer.Option(metavar="ID")] = None,
    kafka: console.Kafka = None,
    data: console.Data = None,
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

    With --data, it is the log of `hearsay serve` in this directory that may be damaged. Records that the state contains
    are not needed any more; what is lost of others is counted and published as a shortfall. --lost 0 lets it go on.

    All workers, or `hearsay serve`, must be stopped.

    Example: hearsay recover --lost 500
    """
    if data is not None:
        if survey or partition or kafka:
            raise SettingsError(
                "--data names a log of this machine, and --survey, --partition and --kafka one of a cluster",
                "leave out one or the other",
            )
        _recover_local(data, lost, as_json)
        return
    from servers.settings import load
    from stream_app.faust_app import quarantined_surveys, stuck_partitions, write_state
    from stream_app.kafka import visible

    settings = load().at(kafka).kafka
    topics = visible(settings)
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


def _recover_local(root: Path, lost: int | None, as_json: bool) -> None:
    """Show the damaged logs of a data directory, and let them go on if `lost` is given."""
    from hearsay.data_directory import COLLECTOR, DataDirectory
    from stream_app.local import check_state, damaged_logs
    from views.local import collector

    check_state(root / COLLECTOR)
    directory = DataDirectory(root)
    keys = directory.clock_key(), directory.presence_key()
    with console.progress("comparing the state with the logs"):
        damaged = damaged_logs(directory.collector, keys[0], lost)
    if damaged and lost is not None:
        with console.progress("publishing what is lost"):
            collector(directory.collector, [], *keys, sinks=[directory.results]).close()
    if as_json:
        found = [
            {
                "log": str(one.file),
                "partition": one.partition,
                "what": one.damage.what,
                "lost": one.lost,
                "kept": str(one.kept),
            }
            for one in damaged
        ]
        console.print_json({"damaged": found, "accepted": lost is not None, "lost": lost})
    else:
        _show_damaged(root, damaged, lost)
    if damaged and lost is None:
        raise typer.Exit(1)


def _show_damaged(root: Path, damaged: list[DamagedLog], lost: int | None) -> None:
    if not damaged:
        console.out.print("[green]✓[/] no log is damaged in what was counted")
        return
    table = Table(
        "log",
        Column("what is wrong", overflow="fold"),
        Column("what is lost", overflow="fold"),
        box=None,
        pad_edge=False,
    )
    for one in damaged:
        contained = f"the state has everything before record {one.next_offset}"
        is_lost = f"at most {one.lost:,} reports behind it are lost" if one.lost else "nothing is lost"
        table.add_row(escape(str(one.file)), escape(one.damage.what), f"{contained}: {is_lost}")
    console.out.print(table)
    if lost is None:
        console.out.print(
            f"\nIt goes on after: hearsay recover --data {escape(str(root))} --lost 0\n"
            "(or --lost REPORTS, if so many more were confirmed to their senders and are not in the log)",
            soft_wrap=True,
        )
        return
    most = max(one.lost for one in damaged) + lost
    published = f"at most {most:,} reports are lost, and published as a shortfall" if most else "nothing is lost"
    console.out.print(f"\n[green]✓[/] hearsay serve goes on; {published}", soft_wrap=True)
    for one in damaged:
        if one.kept.exists():
            console.out.print(f"  the damaged log is kept as {escape(str(one.kept))}", soft_wrap=True)
