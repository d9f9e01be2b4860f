"""`hearsay synthesize` and `hearsay people`: records and virtual people that follow what is published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hearsay.terminal import console
from protocols.errors import SettingsError

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".csv", ".parquet")


def synthesize(
    survey: Annotated[str | None, typer.Argument()] = None,
    rows: Annotated[int, typer.Option(min=1, max=10_000_000)] = 10_000,
    period: Annotated[int | None, typer.Option(min=0)] = None,
    window: Annotated[str | None, typer.Option(metavar="FIRST:LAST")] = None,
    out: Annotated[Path | None, typer.Option(show_default=False)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    data: console.Data = None,
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
) -> None:
    """Write records that follow the published tables: of single attributes, and of the pairs that crosses have asked.

    Attributes that no measured pair joins are independent. The file says which pairs were measured, and how far the
    records are from each table. Only published results are read: it costs no budget, and what is suppressed stays so.

    Example: hearsay synthesize festival-week --rows 10000 --out records.parquet
    """
    from hearsay.commands.report import asked_window
    from lab.library import synthesize as draw

    _check_suffix(out, "records")
    wanted = asked_window(period, window)
    with console.progress("drawing records from results"):
        table = draw(data, kafka=kafka, survey=survey, rows=rows, window=wanted, seed=seed)
    _write(table, out, "-records.csv", "file", as_json)


def _check_suffix(out: Path | None, what: str) -> None:
    if out is not None and out.suffix not in SUFFIXES:
        raise SettingsError(f"{out}: {what} are written as CSV or Parquet", f"end the name in {' or '.join(SUFFIXES)}")


def _write(
    table: pa.Table, out: Path | None, ending: str, key: str, as_json: bool, aggregates: Path | None = None
) -> None:
    """Write a file, and say so: to a program the facts, with the file as `key`; to people what stands in the file."""
    facts = json.loads(table.schema.metadata[b"hearsay"])
    path = out or Path(f"{facts['survey'] if aggregates is None else aggregates.stem}{ending}")
    with console.progress(f"writing {path}"):
        write_records(table, path)
    if as_json:
        console.print_json({**facts, key: str(path)})
        return
    console.out.print(table.schema.metadata[b"about"].decode(), soft_wrap=True, markup=False)
    console.out.print(f"wrote {path}", soft_wrap=True, markup=False)


def write_records(table: pa.Table, path: Path) -> None:
    """Write records: CSV begins with lines about them, Parquet has them as metadata named `about`."""
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
        return
    lines = table.schema.metadata[b"about"].decode().split("\n")
    with path.open("wb") as file:
        file.write("".join(f"# {line}\n" for line in lines).encode())
        pyarrow.csv.write_csv(table, file)


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
    from lab.library import people as draw

    _check_suffix(out, "people")
    if aggregates is not None and (period or survey or data or kafka):
        raise typer.BadParameter("choose a file of aggregates, or results")
    periods = None if period is None else span("--period", period)
    with console.progress("drawing people from aggregates"):
        table = draw(
            aggregates if aggregates is not None else data,
            kafka=kafka,
            survey=survey,
            periods=periods,
            lasting=console.words(lasting),
            stay=None if stay is None else _stay(stay),
            people=number,
            seed=seed,
        )
    _write(table, out, "-people.csv", "out", as_json, aggregates)


def _stay(text: str) -> tuple[str, float]:
    name, _, share = text.rpartition("=")
    try:
        found = float(share)
    except ValueError:
        found = -1
    if not name or not 0 <= found <= 1:
        raise typer.BadParameter(f"--stay: {text!r} is not of the form NAME=SHARE, such as area=0.8")
    return name, found
