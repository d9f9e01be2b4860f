"""An edge as edge.yaml declares it: a survey, a directory of events, and a collection that its reports go to."""

import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog

from hearsay.data_directory import DataDirectory
from hearsay.running.collecting import collect
from hearsay.survey_files import MAX_BYTES, read_survey, read_text
from hearsay.terminal import console
from memo_store.period_keys import require_longer_than_grace
from producers.edge import EdgeDeclaration, EdgeState, open_edge, parse_edge
from producers.events import Options
from producers.stopping import Stop, ctrl_c_asks
from protocols.errors import SettingsError, Stopped
from protocols.survey import Survey
from servers.settings import load

LOOK_SECONDS = 1.0
"""Between two looks into the directory."""
NAP_SECONDS = 0.1
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Edging:
    """An edge that can be run."""

    declared: EdgeDeclaration
    survey: Survey
    options: Options
    beside: Path
    data: Path

    @classmethod
    def of(cls, file: Path) -> "Edging":
        """What a file declares, with paths relative to it."""
        text = read_text(file, MAX_BYTES, "give the file of an edge, such as edge.yaml")
        declared, beside = parse_edge(text, str(file)), file.parent
        survey = read_survey(beside / declared.survey)
        events = beside / (declared.events.directory or "")
        if not events.is_dir():
            raise SettingsError(f"there is no directory {events}", "make it, or name another under events.directory")
        return cls(declared, survey, declared.options(survey), beside, beside / declared.data)

    def run(self, kafka: str | None, once: bool, end: datetime | None) -> EdgeState:
        """Read events until it is stopped, or once; the state of the edge then."""
        forget_after = self.declared.forget_after
        require_longer_than_grace(self.survey, forget_after)
        data, events = DataDirectory(self.data), load().at(self.declared.events.kafka).kafka
        if self.declared.events.topic is not None:
            from stream_app.kafka import limit_decompression  # loads Kafka's client, which files do not need

            limit_decompression(events.max_batch_bytes)
        with (
            collect(data, self.survey, load(), kafka, forget_after) as to,
            closing(
                open_edge(
                    self.declared,
                    self.beside,
                    to.memos,
                    to.sink,
                    data.root / "edge" / self.survey.id,
                    kafka=events,
                    clock_key=to.clock_key,
                    now=lambda: datetime.now(UTC),
                )
            ) as edge,
            console.progress("reading events") as step,
            ctrl_c_asks() as stop,
        ):
            source = self.declared.events.topic or self.declared.events.directory
            log.info("edge started", survey=self.survey.id, events=source, periods=edge.state.totals.periods)

            def show(name: str, state: EdgeState) -> None:
                step(state.rows, state.rows, f"{name}, {state.totals.reports:,} reports")

            try:
                while True:
                    if edge.take(show, stop):
                        data.note_late_events(self.survey.id, edge.state.late)
                        log.info("events read", rows=edge.state.rows, reports=edge.state.totals.reports)
                    if once or _wait(stop):
                        break
                if end is not None:
                    edge.end(end, stop)
            except Stopped as stopped:
                log.info("edge stopped", reason=stopped.message)
            return edge.state


def _wait(stop: Stop) -> bool:
    """Wait for the next look, or until the user asks to stop; whether that is so."""
    until = time.monotonic() + LOOK_SECONDS
    while not stop() and time.monotonic() < until:
        time.sleep(NAP_SECONDS)
    return stop()
