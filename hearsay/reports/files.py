"""Opening published results, and choosing what to show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

<<<<<<< HEAD
import pyarrow as pa
import pyarrow.csv

from analytics.mobility import (
    PART_ROWS,
    MobilityReport,
    WindowReport,
    explained,
    tables,
    tables_in_parts,
    with_lost_presence,
)
=======
from analytics.mobility import MobilityReport, WindowReport, with_lost_presence
>>>>>>> exports
from hearsay.places import known_directory
from hearsay.reports.sources import Results
from hearsay.running.data_directory import COLLECTOR, DataDirectory
from protocols.errors import ResultsError, SettingsError, SurveyError
from protocols.survey import Survey
from servers.settings import load
from stream_app.results import MobilityResult


@contextmanager
def open_results(survey: str | None, data: Path | None, kafka: str | None) -> Iterator[tuple[Results, Path | None]]:
    """The results on a Kafka cluster, or in a data directory; and the directory, if one is named or read.

    Without both, the directory is that of the survey, or the only one that there is.
    """
    if kafka is not None:
        from stream_app.kafka import KafkaResults, Topics  # each takes time that the other does not need

        settings = load().at(kafka).kafka
        yield KafkaResults(settings, Topics(settings.prefix)), data
        return
    from stream_app.local import LocalStore

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


def chosen(results: Results, survey: str | None) -> Survey:
    """The survey with this id, or the only one if no id is given."""
    known = {found.id: found for found in sorted(results.surveys(), key=lambda found: found.id)}
    if survey in known:
        return known[survey]
    listed = ", ".join(known) or "none"
    if survey is not None:
        raise SurveyError(f"no survey {survey!r} is published here", f"known surveys: {listed}")
    if len(known) != 1:
        raise SurveyError(f"{len(known)} surveys are published here", f"give the id of one: {listed}")
    return next(iter(known.values()))


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


<<<<<<< HEAD
def write_tables(report: MobilityReport, csv: Path | None, parquet: Path | None) -> list[Path]:
    """Write the tables that have a directory; returns all paths written."""
    written: list[Path] = []
    if csv is not None:
        written += _write_tables(
            report, csv, ".csv", pyarrow.csv.CSVWriter, partial(spreadsheet_table, report.calendar)
        )
    if parquet is not None:
        from pyarrow.parquet import ParquetWriter

        written += _write_tables(report, parquet, ".parquet", ParquetWriter, lambda table: table)
    return written


def spreadsheet_table(calendar: Calendar, table: pa.Table) -> pa.Table:
    """A table for spreadsheets: times are local, and no text is taken for a formula.

    A cell that would be one begins with an apostrophe.
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            local = _each_once(table[field.name].cast(pa.int64()), partial(_local_times, calendar))
            table = table.set_column(place, field.name, local)
        elif pa.types.is_string(field.type):
            table = table.set_column(place, field.name, _each_once(table[field.name], _no_formulas))
    return table


def _each_once(column: pa.ChunkedArray, change: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """A column whose entries are changed, each different one once: most repeat the same few."""
    encoded = column.combine_chunks().dictionary_encode()
    return pa.chunked_array([change(encoded.dictionary).take(encoded.indices)])


def _no_formulas(texts: pa.Array) -> pa.Array:
    import pyarrow.compute as pc  # takes time that only tables need

    return pc.replace_substring_regex(texts, r"^([=+\-@\t\r])", r"'\1")


def _local_times(calendar: Calendar, instants: pa.Array) -> pa.Array:
    """Times as text in local time, with the offset from UTC that holds then."""
    return pa.array([calendar.local(instant).isoformat() for instant in instants.to_pylist()], pa.string())


def _write_tables(
    report: MobilityReport,
    directory: Path,
    suffix: str,
    writer: Callable[[Path, pa.Schema], Any],
    shown: Callable[[pa.Table], pa.Table],
) -> list[Path]:
    """Write one file for each table that has rows, and one that explains their columns; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[str, Path] = {}
    names = tables(report.model_copy(update={"windows": ()}))
    with ExitStack() as files:
        writers: dict[str, Any] = {}
        for name, table in _parts_of_tables(report):
            rows = shown(table)
            if name not in writers:
                written[name] = directory / f"{name}{suffix}"
                writers[name] = files.enter_context(writer(written[name], rows.schema))
            writers[name].write_table(rows)
    explaining = {name: table for name, table in names.items() if name in written}
    pyarrow.csv.write_csv(explained(explaining), directory / COLUMNS)
    return [*(written[name] for name in explaining), directory / COLUMNS]


def _parts_of_tables(report: MobilityReport) -> Iterator[tuple[str, pa.Table]]:
    """The rows of all tables, by the name of their table: enough of them at a time to be worth a call, and not more."""
    waiting: dict[str, list[pa.Table]] = {}
    for some in in_parts(report):
        for name, parts in tables_in_parts(some).items():
            for part in parts:
                waiting.setdefault(name, []).append(part)
                if sum(map(len, waiting[name])) >= PART_ROWS:
                    yield name, pa.concat_tables(waiting.pop(name))
                    pa.default_memory_pool().release_unused()
    for name, left in waiting.items():
        if sum(map(len, left)):
            yield name, pa.concat_tables(left)


def in_parts(report: MobilityReport) -> Iterator[MobilityReport]:
    """A report in reports of some of its windows each, so that tables of many values are never in memory as a whole."""
    rows = sum(len(attribute.values) for attribute in report.attributes)
    size = max(1, PART_ROWS // max(1, rows))
    for first in range(0, len(report.windows), size):
        yield report.model_copy(update={"windows": report.windows[first : first + size]})


=======
>>>>>>> exports
def json_parts(report: MobilityReport, more: Mapping[str, Any]) -> Iterator[str]:
    """A report as JSON, with more keys at its end, in parts of one window each."""
    before, after = report.model_copy(update={"windows": ()}).model_dump_json().split('"windows":[]')
    yield f'{before}"windows":['
    for number, window in enumerate(report.windows):
        yield ("," if number else "") + window.model_dump_json()
    keys = "".join(f",{json.dumps(key)}:{json.dumps(value, default=str)}" for key, value in more.items())
    yield f"]{after.removesuffix('}')}{keys}}}"
