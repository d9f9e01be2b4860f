"""An edge over a directory: files are read once, in the order of their names, and each period is sent once.

    files ─► batches ─► events ─► spool, sealed ─► state, sealed ─► end of period + lateness ─► choice ─► reports

A batch is taken when the state says so: the spool is on disk before, and is cut back to what the state says when an
edge starts. So after a crash at any moment each event is held once. A period's reports are sent before the state says
so, and are the same when they are sent again (`producers/reporting.py`). What is held of it is erased after that.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from memo_store.sealing import Sealer
from memo_store.survey_memos import SurveyMemos
from producers.edge.state import EdgeState, meaning_of
from producers.events.choosing import Chooser
from producers.events.interpreting import Events, Interpreter, Options
from producers.events.people import People
from producers.events.quality import Fault, Found, Quality
from producers.events.sending import PeriodSender
from producers.events.spool import AT_ONCE, Spool
from producers.files import EventFiles, event_files
from producers.sinks.base import Sink
from producers.source_clock import SourceClock
from producers.stopping import Stop, never
from protocols.errors import ReplayError, Stopped
from protocols.survey import MICROSECOND, micros
from servers.private_files import private_directory

AHEAD = timedelta(minutes=10)
"""How far the clocks of sources may be ahead. Events beyond it are faults: a single one of the year 2999 would end all
periods before it."""
Progress = Callable[[str, EdgeState], None]
"""Called with the name of the file that is read."""


class DirectoryEdge:
    """One survey's edge. `workspace` holds its state and what is open; one process at a time may have it."""

    def __init__(
        self,
        memos: SurveyMemos,
        sink: Sink,
        options: Options,
        directory: Path,
        workspace: Path,
        *,
        clock_key: bytes | None,
        now: Callable[[], datetime],
        at_once: int = AT_ONCE,
    ) -> None:
        scheme, keyring = memos.respondent.scheme, memos.respondent.keyring
        survey = scheme.survey
        self._directory = directory
        self._options = options
        self._now = now
        self._interpreter = Interpreter(survey, options)
        self._people = People(keyring)
        self._sealer = Sealer(keyring, f"events {survey.id}", scheme.fingerprint)
        self._file = private_directory(workspace) / "state"
        chooser = Chooser(survey.attributes, options.rules, options.columns.positions)
        self.state = self._opened(meaning_of(scheme.fingerprint, self._interpreter.columns, chooser.rules))
        try:
            self._spool = Spool(workspace / "open", len(survey.attributes), self._sealer, at_once, self.state.held)
        except BlockingIOError:
            raise ReplayError(f"another process is the edge of {workspace}", "wait until it ends") from None
        self._interpreter.watermark, self._interpreter.before = self.state.watermark, self.state.before
        self._sender = PeriodSender(memos, sink, SourceClock(survey, clock_key, sink), chooser, self._spool)

    def take(self, progress: Progress = lambda name, state: None, stop: Stop = never) -> int:
        """Read the files that are there and were not read yet, and send what has ended. How many files these were."""
        taken = 0
        if self.state.totals.through >= 0:
            self._sender.close(self.state.totals.through)  # what a process that died may have left to do
        for path in self._waiting():
            skip = self.state.batches if path.name == self.state.reading else 0
            for _ in self._batches(path, skip, stop):
                progress(path.name, self.state)
            size, changed = _identity(path)
            read = {name: known for name, known in self.state.files.items() if (self._directory / name).exists()}
            self._commit(files={**read, path.name: (size, changed)}, reading=None, batches=0)
            taken += 1
        return taken

    def end(self, moment: datetime, stop: Stop = never) -> None:
        """Send and close all periods that end until then: their later events are late."""
        passed = micros(moment) + self._interpreter.tolerance
        self._interpreter.watermark = max(self._interpreter.watermark, passed)
        self._commit(watermark=self._interpreter.watermark)
        self._send(self._quality(None), stop)
        self._sender.finish(self._interpreter.calendar.closed(micros(moment)))

    def close(self) -> None:
        self._spool.close()

    def _opened(self, meaning: str) -> EdgeState:
        state = EdgeState.read(self._file, self._sealer)
        if state.meaning not in ("", meaning):
            raise ReplayError(
                "columns or rules are not those with which the open periods were begun",
                "write them as they were, or give the survey a new id and other data",
            )
        return replace(state, meaning=meaning)

    def _waiting(self) -> Iterator[Path]:
        """The files to read: first the one that was begun, then by name, also those that come meanwhile."""
        while True:
            found = {path.name: path for path in event_files(self._directory)}
            for name, known in self.state.files.items():
                if name in found and _identity(found.pop(name)) != known:
                    raise ReplayError(
                        f"{self._directory / name} has changed since it was read",
                        "move it away, and drop events that are new under a name that was not used",
                    )
            if self.state.reading is not None and self.state.reading not in found:
                raise ReplayError(
                    f"{self._directory / self.state.reading} was read in part, and is gone",
                    "put it back: files may be moved away when they have been read",
                )
            if not found:
                return
            yield found[self.state.reading or min(found)]

    def _batches(self, path: Path, skip: int, stop: Stop) -> Iterator[None]:
        quality = self._quality(path)
        state = self.state  # what was counted before this file, or before the process started
        latest = self._interpreter.calendar.end(self._interpreter.calendar.last)
        for number, batch in enumerate(quality.files.batches(self._interpreter.columns)):
            if number < skip:
                continue
            self._interpreter.until = min(latest, micros(self._now()) + AHEAD // MICROSECOND)
            read = self._interpreter.read(batch, quality)
            each = read.one_by_one()
            self._spool.add(*each.spooled(self._people.devices(each.persons), after=self.state.totals.through))
            found = {fault.name: count.count for fault, count in quality.found.items() if fault is not Fault.DUPLICATE}
            self._commit(
                watermark=self._interpreter.watermark,
                before=self._interpreter.before,
                rows=state.rows + quality.rows,
                told_apart=state.told_apart + quality.told_apart,
                faults={name: state.faults.get(name, 0) + count for name, count in found.items()},
                late=_with_late(self.state.late, read),
                reading=path.name,
                batches=number + 1,
            )
            self._send(quality, stop)
            yield
            if stop():
                raise Stopped(f"stopped in {path.name}", "start it again to go on")

    def _send(self, quality: Quality, stop: Stop) -> None:
        through = self._interpreter.last_ended
        for period in [period for period in self._spool.periods if period <= through]:
            totals = self._sender.send(period, self.state.totals, quality, stop)
            self._commit(totals=totals)
            self._sender.close(period)
        if through >= 0:
            self._sender.advance(through + 1)

    def _commit(self, **changes: object) -> None:
        state = replace(self.state, **changes)  # type: ignore[arg-type]  # by name
        held = {period: size for period, size in self._spool.sync().items() if period > state.totals.through}
        self.state = replace(state, held=held)
        self.state.write(self._file, self._sealer)

    def _quality(self, path: Path | None) -> Quality:
        quality = Quality(EventFiles([path] if path else [], self._options.form))
        quality.found[Fault.DUPLICATE] = Found(self.state.totals.duplicates)
        return quality


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _with_late(late: dict[int, int], read: Events) -> dict[int, int]:
    periods, counts = np.unique(read.period[read.late], return_counts=True)
    return dict(Counter(late) + Counter(dict(zip(periods.tolist(), counts.tolist(), strict=True))))
