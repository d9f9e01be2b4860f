"""`hearsay synthesize`: records that follow what is published."""

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

    if out is not None and out.suffix not in SUFFIXES:
        raise SettingsError(f"{out}: records are written as CSV or Parquet", f"end the name in {' or '.join(SUFFIXES)}")
    wanted = asked_window(period, window)
    with console.progress("drawing records from results") as step:
        table = draw(data, kafka=kafka, survey=survey, rows=rows, window=wanted, seed=seed)
        facts, lines = json.loads(table.schema.metadata[b"hearsay"]), table.schema.metadata[b"about"].decode()
        path = out or Path(f"{facts['survey']}-records.csv")
        step(1, 2, f"writing {path}")
        write_records(table, path)
    if as_json:
        console.print_json({**facts, "file": str(path)})
        return
    console.out.print(lines, soft_wrap=True, markup=False)
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
