"""`hearsay topics`: make our topics on a Kafka cluster, and say what is wrong with those that are there."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich.markup import escape

from hearsay.terminal import console

app = typer.Typer(help="Make or check the topics on the cluster of HEARSAY_KAFKA_*.", no_args_is_help=True)

Prefix = Annotated[
    str | None, typer.Option(help="What the names of the topics begin with, if not that of the settings.")
]
RetentionDays = Annotated[
    int, typer.Option(min=1, help="How long reports are kept: longer than the longest period and its grace.")
]
# The defaults of `Topics`, which is slow to import.
PARTITIONS, MERGE_PARTITIONS, RETENTION_DAYS = 8, 4, 30


@app.command("create")
def create_topics(
    prefix: Prefix = None,
    partitions: Annotated[
        int, typer.Option(min=1, help="Partitions of the reports: the most workers that can count. Fixed for good.")
    ] = PARTITIONS,
    merge_partitions: Annotated[
        int, typer.Option(min=1, help="Partitions of the partials: the most workers that can merge. Fixed for good.")
    ] = MERGE_PARTITIONS,
    retention_days: RetentionDays = RETENTION_DAYS,
    replication: Annotated[int, typer.Option(min=-1, help="Copies of each partition; -1: the cluster's default.")] = -1,
    as_json: console.AsJson = False,
) -> None:
    """Make the topics that are missing. Those that exist are left as they are; `check` judges them.

    Example: hearsay topics create --partitions 24 --replication 3
    """
    from servers.settings import load
    from stream_app.kafka import Topics, create

    kafka = load().kafka
    topics = Topics(prefix or kafka.prefix, partitions, merge_partitions, retention_days)
    with console.progress("making the topics"):
        made = create(kafka, topics, replication=replication)
    if as_json:
        console.print_json({"made": made})
        return
    for name in made:
        console.out.print(f"[green]✓[/] made {name}")
    if not made:
        console.out.print("All topics were there already.")


@app.command("check")
def check_topics(
    prefix: Prefix = None,
    retention_days: RetentionDays = RETENTION_DAYS,
    as_json: console.AsJson = False,
) -> None:
    """Explain everything about the topics that is not as it must be. The exit code is 1 if there is anything.

    Example: hearsay topics check
    """
    from servers.settings import load
    from stream_app.kafka import check, existing

    kafka = load().kafka
    with console.progress("looking at the topics"):
        topics = replace(existing(kafka, prefix), retention_days=retention_days)
        mismatches = check(kafka, topics)
    if as_json:
        console.print_json([asdict(mismatch) for mismatch in mismatches])
    elif mismatches:
        for mismatch in mismatches:
            console.out.print(f"[red]✗[/] {escape(str(mismatch))}", soft_wrap=True)
    else:
        console.out.print(
            f"[green]✓[/] all {len(topics.all())} topics are as they must be "
            f"({topics.partitions} partitions to count, {topics.merge_partitions} to merge)"
        )
    if mismatches:
        raise typer.Exit(1)
