"""`hearsay report`: show results, or write them as a page or as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hearsay.terminal import console


def report(
    survey: console.SurveyId = None,
    period: Annotated[int | None, typer.Option(help="Show this period instead of the latest.", min=0)] = None,
    window: Annotated[str | None, typer.Option(metavar="FIRST:LAST", help="Show the window of these periods.")] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="Compare with these periods as the baseline.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to this file.")] = None,
    areas: console.Areas = None,
    csv: Annotated[Path | None, typer.Option(help="Write CSV tables into this directory.")] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write Parquet tables into this directory.")] = None,
    data: console.ResultsData = None,
    kafka: console.ResultsKafka = None,
    forged: Annotated[
        float | None,
        typer.Option("--robust", metavar="SHARE", help="Show bounds too, if up to this share of reports is forged."),
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Show final results: visitors of every period, and the answers of the latest period or of the one given.

    A verdict says whether the counts of each period can have come from honest devices. Estimates do not depend on it.

    With a period or a window, files and JSON contain only that; otherwise everything that was published.

    Example: hearsay report --window 0:6 --html week.html
    """
    from hearsay.reports.files import chosen, json_parts, latest, mobility_of, narrowed, open_results, with_noted_losses
    from hearsay.reports.integrity import robust_json, robust_of, robust_table, verdict_lines
    from protocols.scheme import Scheme

    asked = asked_window(period, window)
    with console.progress("reading results"), open_results(survey, data, kafka) as (results, root):
        normal = None if baseline is None else _span("--baseline", baseline)
        span = normal and range(normal[0], normal[1] + 1)
        published = chosen(results, survey)
        whole = mobility_of(results, published.id, span)
        more: tuple[Any, ...] = ()
        if html is not None and asked is None:
            more = results.live(published.id), results.forecasts(published.id)
    if root is not None:
        whole = with_noted_losses(whole, root)
    selected = whole if asked is None else narrowed(whole, *asked)
    bounds = None if forged is None else robust_of(Scheme(published), latest(selected), forged)
    written: list[Path] = []
    if csv is not None or parquet is not None:
        from hearsay.reports.table_files import write_tables

        written += write_tables(selected, csv, parquet)
    if html is not None:
        from hearsay.reports.page import write_page

        write_page(html, published, selected, *more, data=root, areas=areas, baseline=normal)
        written.insert(0, html)
    if as_json:
        console.print_json_parts(json_parts(selected, {} if bounds is None else {"robust": robust_json(bounds)}))
        return
    for path in written:
        console.out.print(f"wrote {path}", soft_wrap=True, markup=False)
    if not written:
        from hearsay.reports.tables import answers_table, units_table, visitors_table

        if asked is None:
            console.out.print(visitors_table(selected))
            if (units := units_table(selected)) is not None:
                console.out.print(units)
        console.out.print(answers_table(selected, latest(selected)))
        if bounds is not None:
            console.out.print(robust_table(selected, latest(selected), bounds))
        for line in verdict_lines(selected):
            console.out.print(line)


def asked_window(period: int | None, window: str | None) -> tuple[int, int] | None:
    """The first and the last period that were asked for; None: no choice was made."""
    if period is not None and window is not None:
        raise typer.BadParameter("choose one of --period and --window")
    if period is not None:
        return period, period
    return None if window is None else _span("--window", window)


def _span(option: str, text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not (colon and first.isdigit() and last.isdigit() and int(first) <= int(last)):
        raise typer.BadParameter(f"{option}: {text!r} is not of the form FIRST:LAST, such as 0:6")
    return int(first), int(last)
