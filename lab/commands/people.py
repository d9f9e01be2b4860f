"""`hearsay people`: virtual people who come out as the published aggregates, or as a user's own."""

import json
from pathlib import Path
from typing import Annotated

import typer

from hearsay.terminal import console
from protocols.errors import SettingsError


def people(
    aggregates: Annotated[Path | None, typer.Argument()] = None,
    survey: str | None = None,
    period: Annotated[str | None, typer.Option(metavar="FIRST:LAST", show_default=False)] = None,
    lasting: Annotated[str, typer.Option(metavar="NAMES")] = "",
    stay: Annotated[str | None, typer.Option(metavar="NAME=SHARE")] = None,
    number: Annotated[int | None, typer.Option("--people")] = None,
    out: Annotated[Path | None, typer.Option(show_default=False)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    data: console.Data = None,
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
) -> None:
    """Write virtual people, who come out as published: the different people of all windows of days, and their values.

    A row for each person and day. Windows of every length up to the horizon are exact. How values go with presence
    follows from windows by value (--lasting); how they follow each other from day to day is not known (--stay). The
    file says what is followed, what is missed and what is assumed. Only aggregates are read: it costs no budget.

    Example: hearsay people --survey festival-week --lasting gender --out people.parquet
    """
    from hearsay.commands.report import span
    from lab.commands.synthesize import SUFFIXES, write_records
    from lab.library import people as draw

    if out is not None and out.suffix not in SUFFIXES:
        raise SettingsError(f"{out}: people are written as CSV or Parquet", f"end the name in {' or '.join(SUFFIXES)}")
    if aggregates is not None and (period or survey or data or kafka):
        raise typer.BadParameter("choose a file of aggregates, or results")
    periods = None if period is None else span("--period", period)
    kept = [name.strip() for name in lasting.split(",") if name.strip()]
    with console.progress("drawing people from aggregates") as step:
        table = draw(
            aggregates if aggregates is not None else data,
            kafka=kafka,
            survey=survey,
            periods=periods,
            lasting=kept,
            stay=None if stay is None else _stay(stay),
            people=number,
            seed=seed,
        )
        facts, lines = json.loads(table.schema.metadata[b"hearsay"]), table.schema.metadata[b"about"].decode()
        path = out or Path(f"{facts['survey'] if aggregates is None else aggregates.stem}-people.csv")
        step(1, 2, f"writing {path}")
        write_records(table, path)
    if as_json:
        console.print_json({**facts, "out": str(path)})
        return
    console.out.print(lines, soft_wrap=True, markup=False)
    console.out.print(f"wrote {path}", soft_wrap=True, markup=False)


def _stay(text: str) -> tuple[str, float]:
    name, _, share = text.rpartition("=")
    try:
        found = float(share)
    except ValueError:
        found = -1
    if not name or not 0 <= found <= 1:
        raise typer.BadParameter(f"--stay: {text!r} is not of the form NAME=SHARE, such as area=0.8")
    return name, found
