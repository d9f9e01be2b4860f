"""Finding what was published and writing it down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from analytics.mobility import MobilityReport
from analytics.mobility.model import WindowReport
from analytics.mobility.page import render_page
from analytics.mobility.tables import write_csv, write_parquet
from hearsay.datadir import COLLECTOR
from hearsay.results import Results
from protocols.errors import LogError, SurveyError
from protocols.settings import load
from stream_app.local_store import LocalStore
from stream_app.results_reader import KafkaResults
from stream_app.topics import existing


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
        reach = f"{report.windows[0].first} to {max(window.last for window in report.windows)}"
        raise LogError(
            f"nothing is published of {what}",
            f"there are periods {reach}, and windows of {lengths} periods among them",
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
    for directory, write in ((csv, write_csv), (parquet, write_parquet)):
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            written += write(report, directory)
    return written
