"""An edge over a directory: files are read once, in the order of their names, and each period is sent once.

    files ─► batches ─► events ─► spool, sealed ─► state, sealed ─► end of period + lateness ─► choice ─► reports

A batch is taken when the state says so: the spool is on disk before, and is cut back to what the state says when an
edge starts. So after a crash at any moment each event is held once. A period's reports are sent before the state says
so, and are the same when they are sent again (`producers/reporting.py`). What is held of it is erased after that.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter

from memo_store.sealing import Sealer
from memo_store.survey_memos import SurveyMemos
from producers.events.interpreting import Options
from producers.events.quality import Fault, Found, Quality
from producers.events.sending import Pipeline, Totals
from producers.files import BAD, EventFiles, event_files
from producers.sinks import Sink
from producers.stopping import Stop, never
from protocols.arrays import Whole
from protocols.errors import ReplayError, Stopped, StoreError
from protocols.survey import micros
from servers.private_files import private_directory, write_private


@dataclass(frozen=True)
class Counted:
    """What an edge has counted, without a person or value. `totals.through` is the last period that it has sent."""

    meaning: str = ""
    """A digest of what decides which reports events become."""
    totals: Totals = field(default_factory=Totals)
    rows: int = 0
    told_apart: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    late: dict[int, int] = field(default_factory=dict)
    """By period: the events that came too late."""

    def begun(self, events: Pipeline) -> Self:
        """The same, for events of one meaning; refuses those of another."""
        meaning = hashlib.sha256(repr(events.meaning).encode()).hexdigest()
        if self.meaning not in ("", meaning):
            raise ReplayError(
                "columns or rules are not those with which the open periods were begun",
                "write them as they were, or give the survey a new id and other data",
            )
        return replace(self, meaning=meaning)

    @property
    def quality(self) -> Quality:
        """To count the faults of the next events in, after the duplicates so far."""
        quality = Quality(EventFiles([]))
        quality.found[Fault.DUPLICATE] = Found(self.totals.duplicates)
        return quality

    def worst_since(self, before: "Counted") -> tuple[Fault, int, float]:
        """The fault that lost most events since then: how many, and their share of the rows that were read."""
        losing = [fault for fault in Fault if fault is not Fault.DUPLICATE]
        counts = {fault: self.faults.get(fault.name, 0) - before.faults.get(fault.name, 0) for fault in losing}
        worst = max(losing, key=counts.__getitem__)
        rows = self.rows - before.rows
        return worst, counts[worst], min(1.0, counts[worst] / max(1, rows))

    def counting(self, quality: Quality, late: Whole) -> Self:
        """The same with the faults of some more rows, and the periods of late events."""
        found = {fault.name: found.count for fault, found in quality.found.items() if fault is not Fault.DUPLICATE}
        return replace(
            self,
            rows=self.rows + quality.rows,
            told_apart=self.told_apart + quality.told_apart,
            faults={name: self.faults.get(name, 0) + count for name, count in found.items()},
            late=dict(Counter(self.late) + Counter(late.tolist())),
        )


@dataclass(frozen=True)
class EdgeState(Counted):
    """After some batches of some files. Whatever was done after it is done again, from here on."""

    watermark: int = int(BAD)
    before: int = int(BAD)
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The files that were read and are still there: their sizes and times of change."""
    reading: str | None = None
    batches: int = 0
    """How many batches were read of the file `reading`."""
    held: dict[int, tuple[int, int]] = field(default_factory=dict)
    """What is open (`Spool`)."""

    @classmethod
    def read(cls, path: Path, sealer: Sealer) -> "EdgeState":
        """The state in a file; a new one if there is none."""
        try:
            return TypeAdapter(cls).validate_json(sealer.unseal(path.name, path.read_bytes()))
        except FileNotFoundError:
            return cls()
        except (StoreError, ValueError):
            raise ReplayError(
                f"{path} is damaged, or was written under another key", "restore it and fleet.key from one copy"
            ) from None

    def write(self, path: Path, sealer: Sealer) -> None:
        write_private(path, sealer.seal(path.name, json.dumps(asdict(self)).encode()))


Progress = Callable[[str, EdgeState], None]
"""Called with the name of the file that is read."""


class DirectoryEdge:
    """One survey's edge. `workspace` holds its state and what is open; one process at a time may have it."""

    def __init__(
        self, memos: SurveyMemos, sink: Sink, clock_key: bytes, options: Options, directory: Path, workspace: Path
    ) -> None:
        self._directory = directory
        self._form = options.form
        self._events = Pipeline(memos, sink, options, clock_key)
        self._interpreter = self._events.interpreter
        self._file = private_directory(workspace) / "state"
        self.state = EdgeState.read(self._file, self._events.sealer).begun(self._events)
        try:
            self._events.open(workspace / "open", self.state.held)
        except BlockingIOError:
            raise ReplayError(f"another process is the edge of {workspace}", "wait until it ends") from None
        self._interpreter.watermark, self._interpreter.before = self.state.watermark, self.state.before

    def take(self, progress: Progress = lambda name, state: None, stop: Stop = never) -> int:
        """Read the files that are there and were not read yet, and send what has ended. How many files these were."""
        taken = 0
        if self.state.totals.through >= 0:
            self._events.close(self.state.totals.through)  # what a process that died may have left to do
        for path in self._waiting():
            skip = self.state.batches if path.name == self.state.reading else 0
            self._read(path, skip, progress, stop)
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
        self._send(stop)
        self._events.finish(self._interpreter.calendar.closed(micros(moment)))

    def close(self) -> None:
        self._events.spool.close()

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

    def _read(self, path: Path, skip: int, progress: Progress, stop: Stop) -> None:
        for number, batch in enumerate(EventFiles([path], self._form).batches(self._interpreter.columns)):
            if number < skip:
                continue
            self._interpreter.refuse_future()
            quality = self.state.quality
            read = self._interpreter.read(batch, quality)
            self._events.hold(read.one_by_one(), after=self.state.totals.through)
            self.state = self.state.counting(quality, read.period[read.late])
            self._commit(
                watermark=self._interpreter.watermark,
                before=self._interpreter.before,
                reading=path.name,
                batches=number + 1,
            )
            self._send(stop)
            progress(path.name, self.state)
            if stop():
                raise Stopped(f"stopped in {path.name}", "start it again to go on")

    def _send(self, stop: Stop) -> None:
        through = self._interpreter.last_ended
        for period in self._events.ended(through):
            self._commit(totals=self._events.send(period, self.state.totals, self.state.quality, stop))
            self._events.close(period)
        if through >= 0:
            self._events.advance(through + 1)

    def _commit(self, **changes: object) -> None:
        state = replace(self.state, **changes)  # type: ignore[arg-type]  # by name
        held = {period: size for period, size in self._events.spool.sync().items() if period > state.totals.through}
        self.state = replace(state, held=held)
        self.state.write(self._file, self._events.sealer)


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
