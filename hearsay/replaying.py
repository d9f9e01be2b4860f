"""Recorded events, collected: where their reports go, and what is said about the file at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from hearsay import console
from hearsay.collecting import embedded, memo_store
from hearsay.datadir import DataDirectory
from producers.replay import Options, Pace, Progress, Replay, Summary
from producers.reporting import Memos
from producers.sinks.base import Sink
from producers.sinks.directory import DirectorySink, Sent, send_capture
from producers.sinks.kafka import KafkaSink
from producers.stopping import ctrl_c_asks
from protocols import Keyring, Respondent, Scheme, Survey
from protocols.settings import Settings, load
from stream_app.topics import Topics


@dataclass(frozen=True)
class Destination:
    """Where reports go, and what they are made with."""

    keyring: Keyring
    memos: Memos
    sink: Sink
    clock_key: bytes


def replay_events(
    path: Path,
    survey: Survey,
    options: Options,
    data: Path,
    *,
    speed: float | None = None,
    kafka: bool = False,
    capture: Path | None = None,
    partitions: int = 8,
) -> Summary:
    """Replay a file into this process's own collector, into Kafka, or into a directory to send later."""
    directory, settings, scheme = DataDirectory(data), load(), Scheme(survey)
    with _destination(directory, survey, settings, kafka, capture, partitions) as to:
        replay = Replay(
            scheme,
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
def _destination(
    data: DataDirectory, survey: Survey, settings: Settings, kafka: bool, capture: Path | None, partitions: int
) -> Iterator[Destination]:
    if not kafka and capture is None:
        with embedded(data, survey, settings) as collection:
            yield Destination(collection.keyring, collection.memos, collection.app, collection.app.clock_key)
        return
    keyring = data.fleet_keyring()
    with memo_store(data, settings) as store:
        memos = store.survey(Respondent(Scheme(survey), keyring))
        key = settings.clock_key_bytes()
        sink: Sink = DirectorySink(capture, partitions) if capture else KafkaSink(settings.kafka, Topics().reports)
        with closing(sink):
            yield Destination(keyring, memos, sink, key)


def send_directory(directory: Path) -> Sent:
    """Send captured reports to Kafka, from where an earlier attempt ended."""
    with (
        closing(KafkaSink(load().kafka, Topics().reports)) as sink,
        console.progress("sending") as step,
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
