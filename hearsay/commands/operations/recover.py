"""`hearsay recover`: let workers go on that cannot read a log on."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from hearsay.terminal import console


def recover(
    lost: Annotated[
        int | None,
        typer.Option(
            metavar="REPORTS",
            min=0,
            help="Let workers go on: so many reports of a survey are lost at most in each partition.",
        ),
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option(metavar="NUMBER", help="Only this partition; may be repeated.")
    ] = None,
    kafka: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The cluster, if not the one in HEARSAY_KAFKA_*.")
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Show the partitions that workers cannot read on, and with --lost let them go on.

    A topic was deleted and made again, a log was cut off by an election, or records inside it are missing: workers
    stop reading such a partition, so no period of it is closed. Without --lost nothing is changed, and the exit code
    is 1 if there is such a partition.

    With --lost, workers go on with the log as it is now. Every period that is open there is published with the
    number of reports that it may lack; results that are final do not change. All workers must be stopped. This cannot
    be undone.

    Example: hearsay recover --lost 500
    """
    from servers.settings import load
    from stream_app.faust_app import accept, stuck_partitions
    from stream_app.kafka import existing

    settings = (load() if kafka is None else load().at(kafka)).kafka
    topics = existing(settings)
    with console.progress("comparing the state with the logs"):
        stuck = [one for one in stuck_partitions(settings, topics) if not partition or one.partition in partition]
    if lost is not None and stuck:
        with console.progress("letting workers go on"):
            accept(settings, topics, stuck, lost)
    if as_json:
        found = [
            {"topic": one.topic, "partition": one.partition, "fault": one.fault.kind.value, "what": one.fault.what}
            for one in stuck
        ]
        console.print_json({"stuck": found, "accepted": lost is not None, "lost": lost})
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
    if stuck and lost is None:
        raise typer.Exit(1)
