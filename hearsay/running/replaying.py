"""Recorded events, collected: where their reports go, and what is said about the file at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from rich.table import Table

from hearsay.running.collecting import CLUSTER, Origin, collect, reporting
from hearsay.running.data_directory import DataDirectory
from hearsay.terminal import console
from producers.replay import Options, Pace, Progress, Replay, Summary
from producers.sinks import DirectorySink, KafkaSink, Sent, captured_partitions, send_capture
from producers.stopping import ctrl_c_asks
from protocols.survey import Survey
from servers.settings import Settings, load
from stream_app.kafka import Topics


def replay_events(
    path: Path,
    survey: Survey,
    options: Options,
    data: Path,
    *,
    speed: float | None = None,
    kafka: str | None = None,
    capture: Path | None = None,
    partitions: int = 8,
) -> Summary:
    """Replay a file into this process's own collector, into Kafka, or into a directory to send later."""
    directory, settings = DataDirectory(data), load()
    origin: AbstractContextManager[Origin] = (
        collect(directory, survey, settings, kafka)
        if capture is None
        else _capturing(directory, survey, settings, capture, partitions)
    )
    with origin as to:
        replay = Replay(
            to.scheme,
            to.keyring,
            to.memos,
            to.sink,
            path,
            options,
            directory.root / "replay",
            clock_key=to.clock_key,
            pace=Pace(speed),
        )
        with console.progress("replaying") as step, ctrl_c_asks() as stop:

            def show(progress: Progress) -> None:
                step(round(100 * progress.share_read), 100, f"{progress.rows:,} events, {progress.reports:,} reports")

            return replay.run(show, stop)


@contextmanager
def _capturing(
    data: DataDirectory, survey: Survey, settings: Settings, directory: Path, partitions: int
) -> Iterator[Origin]:
    """Reports that are kept in a directory, for a cluster with so many partitions."""
    data.reports_to(survey.id, CLUSTER)
    with (
        closing(DirectorySink(directory, partitions)) as sink,
        reporting(data, survey, settings, sink, settings.clock_key_bytes()) as origin,
    ):
        yield origin


def send_directory(directory: Path, kafka: str | None) -> Sent:
    """Send captured reports to Kafka, from where an earlier attempt ended."""
    captured_partitions(directory)  # a wrong directory is refused before a cluster is looked for
    settings = load() if kafka is None else load().at(kafka)
    with (
        console.progress("sending") as step,
        closing(KafkaSink(settings.kafka, Topics(settings.kafka.prefix).reports)) as sink,
        ctrl_c_asks() as stop,
    ):
        return send_capture(
            directory, sink, lambda sent: step(sent.files, sent.of_files, f"{sent.records:,} records"), stop
        )


def show_summary(summary: Summary) -> None:
    """What was in the file and what became of it, as a table."""
    table = Table("", "count", "first lines", box=None, pad_edge=False)
    about = "" if summary.people_exact else "about "
    again = f"{summary.repeats:,} of them had been made before" if summary.repeats else ""
    table.add_row("rows", f"{summary.rows:,}")
    table.add_row("people", f"{about}{summary.people:,}")
    table.add_row("periods", f"{summary.periods:,}")
    table.add_row("reports", f"{summary.reports:,}", again)
    if summary.ineligible:
        reason = "their period was closed, or they had reported a later one"
        table.add_row("not eligible", f"{summary.ineligible:,}", reason)
    if summary.incomplete:
        table.add_row("not reported", f"{summary.incomplete:,}", "persons in a period without a known value")
    for fault, found in summary.faults.items():
        more = ", ..." if found.count > len(found.first_lines) else ""
        table.add_row(fault.value, f"{found.count:,}", ", ".join(map(str, found.first_lines)) + more)
    console.out.print(table)


def summary_json(summary: Summary) -> dict[str, object]:
    """The same for programs."""
    faults = {
        fault.name.lower(): {"count": found.count, "first_lines": found.first_lines}
        for fault, found in summary.faults.items()
    }
    return {**{name: value for name, value in vars(summary).items() if name != "faults"}, "faults": faults}
