"""Finding what was published and writing it down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet

from analytics.mobility import MobilityReport, WindowReport, render_page, tables
from hearsay.reports.sources import Results
from hearsay.running.data_directory import COLLECTOR
from protocols.errors import LogError, SurveyError
from servers.settings import load
from stream_app.kafka import KafkaResults, existing
from stream_app.local import LocalStore


@contextmanager
def open_results(data: Path, kafka: str | None) -> Iterator[Results]:
    """The results in a data directory, or on a cluster."""
    if kafka is not None:
        settings = load().at(kafka).kafka
        yield KafkaResults(settings, existing(settings))
        return
    with closing(LocalStore.existing(data / COLLECTOR)) as store:
        yield store


def chosen(results: Results, survey: str | None) -> str:
    """The survey that was asked for, or the only one there is."""
    known = sorted(found.id for found in results.surveys())
    if survey in known:
        return str(survey)
    listed = ", ".join(known) or "none"
    if survey is not None:
        raise SurveyError(f"there is no survey {survey!r} here", f"there is: {listed}")
    if len(known) != 1:
        raise SurveyError(f"there are {len(known)} surveys here", f"name one of: {listed}")
    return known[0]


def narrowed(report: MobilityReport, first: int, last: int) -> MobilityReport:
    """The report on one window only."""
    windows = [window for window in report.windows if (window.first, window.last) == (first, last)]
    if not windows:
        what = f"period {first}" if first == last else f"periods {first} to {last} as a window"
        lengths = ", ".join(map(str, sorted({window.last - window.first + 1 for window in report.windows})))
        known = f"{report.windows[0].first} to {max(window.last for window in report.windows)}"
        raise LogError(
            f"nothing is published of {what}",
            f"there are periods {known}, and windows of {lengths} periods among them",
        )
    return report.model_copy(update={"windows": tuple(windows), "triangle": ()})


def latest(report: MobilityReport) -> WindowReport:
    """The last period, or whatever the report is about."""
    periods = [window for window in report.windows if window.kind == "period"]
    return max(periods or report.windows, key=lambda window: window.last)


def write_files(report: MobilityReport, html: Path | None, csv: Path | None, parquet: Path | None) -> list[Path]:
    """What was asked for, as files; their paths."""
    written: list[Path] = []
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(render_page(report))
        written.append(html)
    if csv is not None:
        written += _write_tables(report, csv, ".csv", pyarrow.csv.write_csv)
    if parquet is not None:
        written += _write_tables(report, parquet, ".parquet", pyarrow.parquet.write_table)
    return written


def _write_tables(
    report: MobilityReport, directory: Path, suffix: str, write: Callable[[Any, Path], None]
) -> list[Path]:
    """One file per table that has rows; their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written = {directory / f"{name}{suffix}": table for name, table in tables(report).items() if len(table)}
    for path, table in written.items():
        write(table, path)
    return list(written)
