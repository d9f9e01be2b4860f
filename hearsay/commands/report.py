"""`hearsay report`: show results, or write them as a page or as tables."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hearsay.terminal import console


def report(
    survey: console.SurveyId = None,
    period: Annotated[int | None, typer.Option(min=0)] = None,
    window: Annotated[str | None, typer.Option(metavar="FIRST:LAST")] = None,
    baseline: Annotated[str | None, typer.Option(metavar="FIRST:LAST")] = None,
    day: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], metavar="DATE")] = None,
    by: Annotated[Literal["hour", "day", "week"] | None, typer.Option(metavar="LENGTH")] = None,
    since: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], metavar="DATE")] = None,
    last: Annotated[int | None, typer.Option(min=1)] = None,
    html: Path | None = None,
    areas: Path | None = None,
    csv: Path | None = None,
    parquet: Path | None = None,
    data: console.Data = None,
    kafka: console.Kafka = None,
    forged: Annotated[float | None, typer.Option("--robust", metavar="SHARE")] = None,
    as_json: console.AsJson = False,
) -> None:
    """Show final results: visitors of every period, and the answers of the latest period or of the one given.

    A verdict says whether the counts of each period can have come from honest devices. Estimates do not depend on it.

    With a period, a window or days, files and JSON contain only that; otherwise everything that was published.

    Example: hearsay report --by day --since 2026-10-24
    """
    from hearsay.reports import files, tables
    from protocols.scheme import Scheme

    asked = asked_window(period, window)
    with console.progress("reading results"), files.open_results(survey, data, kafka) as (results, root):
        normal = None if baseline is None else span("--baseline", baseline)
        compared = normal and range(normal[0], normal[1] + 1)
        published = files.chosen(results, survey)
        whole = files.mobility_of(results, published.id, compared, root)
        more: tuple[Any, ...] = ()
        if html is not None and not (asked or by or day or since or last):
            more = results.live(published.id), results.forecasts(published.id)
        only_tables = html is None and not as_json and (csv is not None or parquet is not None)
        readers = None if only_tables else files.figure_of(results, published)
    selected = whole if asked is None else files.narrowed(whole, *asked)
    if by or day or since or last:
        if asked is not None or (day is not None and since is not None):
            raise typer.BadParameter("choose one of --period, --window, --day and --since")
        selected = files.on_days(whole, by, day and day.date(), since and since.date(), last)
    bounds = {} if forged is None else tables.robust_of(Scheme(published), files.latest(selected), forged)
    written: list[Path] = []
    if csv is not None or parquet is not None:
        from hearsay.reports.table_files import write_tables

        written += write_tables(selected, csv, parquet)
    if html is not None:
        from hearsay.reports.page import write_page

        write_page(html, published, selected, *more, data=root, areas=areas, baseline=normal, readers=readers)
        written.insert(0, html)
    if as_json:
        more_keys = {} if forged is None else tables.robust_json(forged, bounds)
        more_keys |= {} if readers is None else {"readers": readers.model_dump(mode="json")}
        console.print_json_parts(files.json_parts(selected, more_keys))
        return
    for path in written:
        console.out.print(f"wrote {path}", soft_wrap=True, markup=False)
    if not written:
        newest = files.latest(selected)
        shown = tables.report_tables(selected, newest) if asked is None else [tables.answers_table(selected, newest)]
        for table in shown:
            console.out.print(table)
        if forged is not None:
            console.out.print(tables.robust_table(selected, newest, forged, bounds))
        for line in tables.verdict_lines(selected):
            console.out.print(line)
        if readers is not None:
            console.out.print(tables.readers_line(readers))


def asked_window(period: int | None, window: str | None) -> tuple[int, int] | None:
    """The first and the last period that were asked for; None: no choice was made."""
    if period is not None and window is not None:
        raise typer.BadParameter("choose one of --period and --window")
    if period is not None:
        return period, period
    return None if window is None else span("--window", window)


def span(option: str, text: str) -> tuple[int, int]:
    """The first and the last period of an option."""
    first, colon, last = text.partition(":")
    if not (colon and first.isdigit() and last.isdigit() and int(first) <= int(last)):
        raise typer.BadParameter(f"{option}: {text!r} is not of the form FIRST:LAST, such as 0:6")
    return int(first), int(last)
