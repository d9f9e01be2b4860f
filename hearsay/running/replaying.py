"""Replays of recorded events, and captures sent later."""

from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from hearsay.data_directory import DataDirectory
from hearsay.running.collecting import collect
from hearsay.terminal import console
from memo_store.period_keys import require_longer_than_grace
from producers.events import Inspection, Options, inspect, refuse_faulty
from producers.files import event_paths
from producers.replay import Pace, Replay, Summary
from producers.sinks import Sent, read_capture, send_capture
from producers.stopping import ctrl_c_asks
from protocols.survey import Survey
from servers.settings import load


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
    speed: float | None,
    kafka: str | None,
    capture: Path | None,
    partitions: int,
    forget_after: timedelta | None = None,
) -> Summary:
    """Replay files. Their reports go to the collector in this process, to Kafka, or to a directory to send later.

    The beginning of each file is looked at before anything is made or sent.
    """
    require_longer_than_grace(survey, forget_after)
    with event_paths(sources) as paths:
        refuse_faulty(survey, paths, options)
        directory = DataDirectory(data)
        captured = None if capture is None else (capture, partitions)
        with (
            collect(directory, survey, load(), kafka, forget_after, captured) as to,
            console.progress("replaying") as step,
            ctrl_c_asks() as stop,
        ):
            replay = Replay(
                to.memos,
                to.sink,
                paths,
                options,
                directory.root / "replay",
                clock_key=to.clock_key,
                pace=Pace(speed),
            )

            def show(share_read: float, rows: int, reports: int) -> None:
                step(round(100 * share_read), 100, f"{rows:,} events, {reports:,} reports")

            return replay.run(show, stop)


def send_directory(directory: Path, kafka: str | None) -> tuple[Sent, list[str]]:
    """Send captured reports to Kafka, from where an earlier attempt ended. Returns also the surveys published for them.

    A survey that is not published is published first, because workers refuse reports of surveys that they do not know.
    """
    from producers.sinks import KafkaSink  # its client takes time that other replays do not need
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
