"""Opening published results, choosing what to show, and writing files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from analytics.mobility import MobilityReport, WindowReport, tables, with_lost_presence
from hearsay.reports.sources import Results
from hearsay.running.data_directory import COLLECTOR, DataDirectory
from protocols.errors import ResultsError, SettingsError, SurveyError
from servers.settings import load
from stream_app.kafka import KafkaResults, existing
from stream_app.local import LocalStore
from stream_app.results import MobilityResult


@contextmanager
def open_results(data: Path, kafka: str | None) -> Iterator[Results]:
    """The results in a data directory, or on a Kafka cluster."""
    if kafka is not None:
        settings = load().at(kafka).kafka
        yield KafkaResults(settings, existing(settings))
        return
    with closing(LocalStore.existing(data / COLLECTOR)) as store:
        yield store


def with_noted_losses(report: MobilityReport, data: Path) -> MobilityReport:
    """The report with what a data directory has noted of losses of its memo store.

    Windows are marked in which presence was lost. If memos were lost, guarantees are those without the cap.
    """
    if not data.exists():
        raise SettingsError(f"there is no data directory {data}", "name the directory of the run or replay")
    directory = DataDirectory(data)
    if directory.loss_note.exists() and isinstance(report, MobilityResult):
        report = report.model_copy(update={"guarantees": report.guarantees.after_a_loss})
    return with_lost_presence(report, directory.presence_losses(report.survey))


def chosen(results: Results, survey: str | None) -> str:
    """The survey with this id, or the only one if no id is given."""
    known = sorted(found.id for found in results.surveys())
    if survey in known:
        return str(survey)
    listed = ", ".join(known) or "none"
    if survey is not None:
        raise SurveyError(f"no survey {survey!r} is published here", f"known surveys: {listed}")
    if len(known) != 1:
        raise SurveyError(f"{len(known)} surveys are published here", f"give the id of one: {listed}")
    return known[0]


def narrowed(report: MobilityReport, first: int, last: int) -> MobilityReport:
    """The report with one window only."""
    windows = [window for window in report.windows if (window.first, window.last) == (first, last)]
    if not windows:
        what = f"period {first}" if first == last else f"periods {first} to {last} as a window"
        lengths = ", ".join(map(str, sorted({window.last - window.first + 1 for window in report.windows})))
        known = f"{report.windows[0].first} to {max(window.last for window in report.windows)}"
        raise ResultsError(
            f"no report of {what} is published",
            f"published: periods {known}, and windows of {lengths} periods among them",
        )
    return report.model_copy(update={"windows": tuple(windows), "triangle": ()})


def latest(report: MobilityReport) -> WindowReport:
    """The last period; if the report has no single periods, its last window."""
    periods = [window for window in report.windows if window.kind == "period"]
    return max(periods or report.windows, key=lambda window: window.last)


def write_tables(report: MobilityReport, csv: Path | None, parquet: Path | None) -> list[Path]:
    """Write the tables that have a directory; returns all paths written."""
    written: list[Path] = []
    if csv is not None:
        written += _write_tables(report, csv, ".csv", _write_csv)
    if parquet is not None:
        written += _write_tables(report, parquet, ".parquet", pyarrow.parquet.write_table)
    return written


def _write_csv(table: pa.Table, path: Path) -> None:
    pyarrow.csv.write_csv(spreadsheet_table(table), path)


def spreadsheet_table(table: pa.Table) -> pa.Table:
    """A table whose text no spreadsheet takes for a formula: such cells begin with an apostrophe."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            text = pc.replace_substring_regex(table[field.name], r"^([=+\-@\t\r])", r"'\1")
            table = table.set_column(place, field.name, text)
    return table


def _write_tables(
    report: MobilityReport, directory: Path, suffix: str, write: Callable[[Any, Path], None]
) -> list[Path]:
    """Write one file for each table that has rows; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written = {directory / f"{name}{suffix}": table for name, table in tables(report).items() if len(table)}
    for path, table in written.items():
        write(table, path)
    return list(written)
