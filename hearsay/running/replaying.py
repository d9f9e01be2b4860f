"""Events become reports: replays of recorded ones, captures sent later, and an edge as edge.yaml declares it."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from hearsay.data_directory import DataDirectory, drawer_in
from hearsay.reports.files import require_results
from hearsay.running.collecting import collect
from hearsay.survey_files import MAX_BYTES, counted_at, read_survey, read_text
from hearsay.terminal import console
from memo_store.period_keys import Forgetting
from producers.edge import EdgeDeclaration, EdgeState, open_edge, parse_edge
from producers.events import Inspection, Options, inspect, refuse_faulty
from producers.files import event_paths
from producers.replay import Replay, Summary
from producers.sinks import Sent, read_capture, send_capture
from producers.stopping import Stop, ctrl_c_asks
from protocols.errors import ReplayError, SettingsError, Stopped
from protocols.survey import Survey
from servers.settings import load

LOOK_SECONDS = 1.0
"""Between two looks into the directory."""
NAP_SECONDS = 0.1
log = structlog.get_logger(__name__)


def check_events(sources: Sequence[Path], survey: Survey, options: Options) -> Inspection:
    """Read all rows, and find out what is wrong with them."""
    with event_paths(sources) as paths, console.progress("checking") as step:
        return inspect(survey, paths, options, None, lambda share: step(round(100 * share), 100, "read"))


def replay_events(
    sources: Sequence[Path],
    survey: Survey,
    options: Options,
    data: Path,
    *,
    kafka: str | None = None,
    captured: tuple[Path, int] | None = None,
    forget_after: timedelta | None = None,
) -> Summary:
    """Replay files. Their reports go to the collector in this process, to Kafka, or captured (`collect`).

    The beginning of each file is looked at before anything is made or sent.
    """
    with event_paths(sources) as paths:
        refuse_faulty(survey, paths, options)
        directory = DataDirectory(data)
        forgetting = None if forget_after is None else Forgetting(forget_after, directory.drawer(survey.id))
        with (
            collect(directory, survey, load(), kafka, forgetting, captured) as to,
            console.progress("replaying") as step,
            ctrl_c_asks() as stop,
        ):
            replay = Replay(to.memos, to.sink, to.clock_key, paths, options, directory.root / "replay")

            def show(share_read: float, rows: int, reports: int) -> None:
                step(round(100 * share_read), 100, f"{rows:,} events, {reports:,} reports")

            summary = replay.run(show, stop)
            if to.results is not None and kafka is None:
                require_results(to.results, survey.id)
            return summary


def send_directory(directory: Path, kafka: str | None) -> tuple[Sent, list[str]]:
    """Send captured reports to Kafka, from where an earlier attempt ended. Returns also the surveys published for them.

    A survey that is not published is published first, because workers refuse reports of surveys that they do not know.
    """
    from producers.kafka_sink import KafkaSink  # its client takes time that other replays do not need
    from stream_app.kafka import Topics, publish_for

    capture = read_capture(directory)  # refuses a wrong directory before it connects to the cluster
    settings = load().at(kafka)
    topics = Topics(settings.kafka.prefix)
    with (
        console.progress("sending") as step,
        closing(KafkaSink(settings.kafka, topics.reports)) as sink,
        ctrl_c_asks() as stop,
    ):
        capture.check_partitions(directory, sink.partitions)
        new = [
            id
            for id, kept in capture.surveys.items()
            if publish_for(settings.kafka, topics, kept.survey, kept.fingerprint)
        ]
        return send_capture(
            directory, sink, lambda sent: step(sent.files, sent.of_files, f"{sent.records:,} records"), stop
        ), new


@dataclass(frozen=True)
class EdgeRun:
    """The state of an edge when it was started, and when it stopped."""

    before: EdgeState
    state: EdgeState

    def require_few_faults(self, most: float) -> None:
        """Refuse to call it a success if more than this share of the rows that were read has one fault."""
        fault, count, share = self.state.worst_since(self.before)
        if share > most:
            raise ReplayError(
                f"{count:,} of the {self.state.rows - self.before.rows:,} rows that were read ({share:.1%}) have one "
                f"fault: {fault}; the other rows are counted",
                "find out why with --check FILE; permit more with --most-faults",
            )


def read_edge(file: Path, kafka: str | None = None) -> tuple[EdgeDeclaration, Survey, Options]:
    """What the file of an edge declares, with paths relative to it; the edge's survey, and how events are read.

    A survey that the edge has begun, or that is published at `kafka`, keeps the version of its terms.
    """
    text = read_text(file, MAX_BYTES, "give the file of an edge, such as edge.yaml")
    declared = parse_edge(text, str(file))
    counted = counted_at(file.parent / declared.data, kafka)
    survey = read_survey(file.parent / declared.survey, counted)
    events = file.parent / (declared.events.directory or "")
    if not events.is_dir():
        raise SettingsError(f"there is no directory {events}", "make it, or name another under events.directory")
    return declared, survey, declared.options(survey)


def run_edge(
    declared: EdgeDeclaration, survey: Survey, beside: Path, kafka: str | None, once: bool, end: datetime | None
) -> EdgeRun:
    """Read events until it is stopped, or once. Declared paths are relative to `beside`."""
    data, events = DataDirectory(beside / declared.data), load().at(declared.events.kafka).kafka
    if declared.events.topic is not None:
        from stream_app.kafka import limit_decompression  # loads Kafka's client, which files do not need

        limit_decompression(events.max_batch_bytes)
    with (
        collect(data, survey, load(), kafka, _forgetting(declared, survey.id, data, beside)) as to,
        closing(open_edge(declared, beside, to.memos, to.sink, to.clock_key, events)) as edge,
        console.progress("reading events") as step,
        ctrl_c_asks() as stop,
    ):
        before = edge.state
        source = declared.events.topic or declared.events.directory
        log.info("edge started", survey=survey.id, events=source, periods=edge.state.totals.periods)

        def show(name: str, state: EdgeState) -> None:
            step(state.rows, state.rows, f"{name}, {state.totals.reports:,} reports")

        try:
            while True:
                if edge.take(show, stop):
                    data.note_late_events(survey.id, edge.state.late)
                    log.info("events read", rows=edge.state.rows, reports=edge.state.totals.reports)
                if once or _wait(stop):
                    break
            if end is not None:
                edge.end(end, stop)
        except Stopped as stopped:
            log.info("edge stopped", reason=stopped.message)
        return EdgeRun(before, edge.state)


def _forgetting(declared: EdgeDeclaration, survey: str, data: DataDirectory, beside: Path) -> Forgetting | None:
    """What an edge forgets; its drawer is in its data, if no directory for several processes is declared."""
    if declared.forget_after is None:
        return None
    own = data.drawer(survey)
    drawer = own if declared.drawer is None else drawer_in(beside / declared.drawer, survey)
    return Forgetting(declared.forget_after, drawer)


def _wait(stop: Stop) -> bool:
    """Wait for the next look, or until the user asks to stop; whether that is so."""
    until = time.monotonic() + LOOK_SECONDS
    while not stop() and time.monotonic() < until:
        time.sleep(NAP_SECONDS)
    return stop()
