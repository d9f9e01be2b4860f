"""`hearsay synthesize`: records that follow what is published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hearsay.terminal import console


def synthesize(
    survey: Annotated[str | None, typer.Argument(help="The survey's id; may be left out if there is only one.")] = None,
    rows: Annotated[int, typer.Option(help="How many records.", min=1, max=10_000_000)] = 10_000,
    period: Annotated[int | None, typer.Option(help="Follow this period instead of the latest.", min=0)] = None,
    window: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="Follow the window of these periods.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A file that ends in .csv or .parquet; if left out, ID-records.csv.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the drawing.", min=0)] = 0,
    data: Annotated[
        Path | None,
        typer.Option(help="The data directory of a run or replay; if left out, hearsay-data/ID.", show_default=False),
    ] = None,
    kafka: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Read the results of this Kafka cluster instead.")
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Write records that follow the published tables: of single attributes, and of the pairs that crosses have asked.

    Attributes that no measured pair joins are independent. The file says which pairs were measured, and how far the
    records are from each table. Only published results are read: it costs no budget, and what is suppressed stays so.

    Example: hearsay synthesize festival-week --rows 10000 --out records.parquet
    """
    from hearsay.commands.report import asked_window
    from hearsay.learning.following import follow
    from hearsay.learning.record_files import check_suffix, write_records

    if out is not None:
        check_suffix(out)
    wanted = asked_window(period, window)
    with console.progress("drawing records from results") as step:
        synthesis = follow(survey, data, kafka, wanted, rows, seed)
        path = out or Path(f"{synthesis.report.survey}-records.csv")
        step(1, 2, f"writing {path}")
        write_records(synthesis, path)
    if as_json:
        console.print_json({**synthesis.record(), "file": str(path)})
        return
    for line in synthesis.lines():
        console.out.print(line, soft_wrap=True, markup=False)
    console.out.print(f"wrote {path}", soft_wrap=True, markup=False)
