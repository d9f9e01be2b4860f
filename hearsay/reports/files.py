"""Opening published results, choosing what to show, and writing files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from analytics.mobility import MobilityReport, WindowReport, explained, tables, with_lost_presence
from hearsay.places import known_directory
from hearsay.reports.sources import Results
from hearsay.running.data_directory import COLLECTOR, DataDirectory
from protocols.errors import ResultsError, SettingsError, SurveyError
from protocols.survey import Calendar
from servers.settings import load
from stream_app.kafka import KafkaResults, Topics
from stream_app.local import LocalStore
from stream_app.results import MobilityResult

COLUMNS = "columns.csv"


@contextmanager
def open_results(survey: str | None, data: Path | None, kafka: str | None) -> Iterator[tuple[Results, Path | None]]:
    """The results on a Kafka cluster, or in a data directory; and the directory, if one is named or read.

    Without both, the directory is that of the survey, or the only one that there is.
    """
    if kafka is not None:
        settings = load().at(kafka).kafka
        yield KafkaResults(settings, Topics(settings.prefix)), data
        return
    root = data or known_directory(survey)
    with closing(LocalStore.existing(root / COLLECTOR)) as store:
        yield store, root


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
        written += _write_tables(report, parquet, ".parquet", _write_parquet)
    return written


def _write_csv(table: pa.Table, path: Path, calendar: Calendar) -> None:
    pyarrow.csv.write_csv(spreadsheet_table(table, calendar), path)


def spreadsheet_table(table: pa.Table, calendar: Calendar) -> pa.Table:
    """A table for spreadsheets: times are local, and no text is taken for a formula.

    A cell that would be one begins with an apostrophe.
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field.name, _local_times(table[field.name], calendar))
        elif pa.types.is_string(field.type):
            text = pc.replace_substring_regex(table[field.name], r"^([=+\-@\t\r])", r"'\1")
            table = table.set_column(place, field.name, text)
    return table


def _local_times(column: pa.ChunkedArray, calendar: Calendar) -> pa.ChunkedArray:
    """Times as text in local time, with the offset from UTC that holds then. Each different time is written once."""
    encoded = column.cast(pa.int64()).combine_chunks().dictionary_encode()
    written = pa.array([calendar.local(instant).isoformat() for instant in encoded.dictionary.to_pylist()], pa.string())
    return pa.chunked_array([written.take(encoded.indices)])


def _write_parquet(table: pa.Table, path: Path, calendar: Calendar) -> None:
    pyarrow.parquet.write_table(table, path)


def _write_tables(
    report: MobilityReport, directory: Path, suffix: str, write: Callable[[pa.Table, Path, Calendar], None]
) -> list[Path]:
    """Write one file for each table that has rows, and one that explains their columns; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    made = {name: table for name, table in tables(report).items() if len(table)}
    written = {directory / f"{name}{suffix}": table for name, table in made.items()}
    for path, table in written.items():
        write(table, path, report.calendar)
    pyarrow.csv.write_csv(explained(made), directory / COLUMNS)
    return [*written, directory / COLUMNS]
