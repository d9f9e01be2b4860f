"""The replay itself: events in, one report per person and period out.

    files ─► batches ─► devices, times, values ─► spool per period ─► end of period + tolerance ─► choice ─► reports

An event that is read after the end of its period plus the tolerance is late: it is counted and left out. All of this is
a function of the files alone, so a second run makes the same reports.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from memo_store.survey_memos import SurveyMemos
from producers.events.interpreting import Options
from producers.events.quality import Fault, Found, Located, Quality
from producers.events.sending import Pipeline, Totals
from producers.files import EventFiles
from producers.sinks import Sink
from producers.stopping import Stop, never
from protocols.errors import ReplayError, Stopped
from servers.private_files import private_directory, read_limited, write_private

SECOND = 1_000_000
LONGEST_NAP = 0.2
TOTALS = TypeAdapter(Totals)
ProgressCallback = Callable[[float, int, int], None]
"""Called with the share of the files that was read, the rows read and the reports made so far."""


def read_checkpoint(path: Path) -> Totals:
    """The totals of a replay so far; zero if there is no file. Repeating a replay is safe without it: it saves work.

    It belongs to some event files, one survey and one set of options: its name is their hash (`EventFiles.identity`).
    """
    try:
        return TOTALS.validate_json(read_limited(path))
    except FileNotFoundError:
        return Totals()
    except ValueError:
        raise ReplayError(f"{path} is damaged", "remove it, and the files are replayed again") from None


def write_checkpoint(path: Path, totals: Totals) -> None:
    private_directory(path.parent)
    write_private(path, TOTALS.dump_json(totals))


@dataclass(frozen=True, kw_only=True)
class Summary(Totals):
    """What was in the files, and what was reported."""

    rows: int
    people: int
    people_exact: bool
    told_apart: int
    """Local times that the clock repeats, of which one was chosen."""
    faults: dict[Fault, Located]


class Pace:
    """Event time runs `speed` times as fast as real time; without a speed, there are no waits."""

    def __init__(self, speed: float | None) -> None:
        self._speed = speed
        self._origin: tuple[float, float] | None = None

    def wait_for(self, moment: float, stop: Stop) -> None:
        """Wait until event time is at `moment` (in seconds), or the user asks to stop. The first call never waits."""
        if self._speed is None:
            return
        if self._origin is None:
            self._origin = (moment, time.monotonic())
        began, at = self._origin
        while not stop() and (left := at + (moment - began) / self._speed - time.monotonic()) > 0:
            time.sleep(min(left, LONGEST_NAP))


class Replay:
    """One replay of some files for one survey.

    `workspace` holds events until their period ends, and the checkpoint from which a second attempt continues. It holds
    true values, so it must be as private as the event files.
    """

    def __init__(
        self, memos: SurveyMemos, sink: Sink, clock_key: bytes, paths: Sequence[Path], options: Options, workspace: Path
    ) -> None:
        self._files = EventFiles(paths, options.form)
        self._quality = Quality(self._files, options.strict)
        self._pace = Pace(options.speed)
        respondent = memos.respondent
        self._events = Pipeline(memos, sink, options, clock_key)
        self._interpreter = self._events.interpreter
        name = self._files.identity(respondent.keyring.key(("replay",)), self._events.meaning, options.meaning)
        try:
            self._events.open(workspace / f"{name}.spool")
        except BlockingIOError:
            raise ReplayError(f"another process is replaying {paths[0]}", "wait until it ends") from None
        self._checkpoint = workspace / f"{name}.json"
        self._totals = read_checkpoint(self._checkpoint)
        self._quality.found[Fault.DUPLICATE] = Found(self._totals.duplicates, self._totals.first_duplicates)

    def run(self, progress: ProgressCallback = lambda share_read, rows, reports: None, stop: Stop = never) -> Summary:
        """Replay the files. Events of periods that an earlier attempt has reported are read, but not reported again."""
        try:
            for batch in self._files.batches(self._interpreter.columns):
                read = self._interpreter.read(batch, self._quality).one_by_one()
                self._events.hold(read, after=self._totals.through)
                self._report(self._interpreter.last_ended, stop)
                progress(batch.share_read, self._quality.rows, self._totals.reports)
            self._report(max(self._events.spool.periods, default=-1), stop)
            self._events.finish(self._totals.through)
            self._events.spool.drop_cells()
        except Stopped as stopped:
            raise Stopped(stopped.message, "run the same command again to continue from there") from None
        finally:
            self._events.spool.abandon()  # the next attempt reads them again
        return Summary(
            **vars(self._totals),
            rows=self._quality.rows,
            people=self._interpreter.people.seen.count(),
            people_exact=self._interpreter.people.seen.exact,
            told_apart=self._quality.told_apart,
            faults=self._quality.located(),
        )

    def _report(self, through: int, stop: Stop) -> None:
        """Report the held periods up to `through`, and close those whose grace has ended."""
        for period in self._events.ended(through):
            self._require_few_faults()
            self._pace.wait_for((self._interpreter.calendar.end(period) + self._interpreter.tolerance) / SECOND, stop)
            self._totals = self._events.send(period, self._totals, self._quality, stop)
            write_checkpoint(self._checkpoint, self._totals)
            self._events.close(period)
            if stop():
                raise Stopped(f"stopped after period {period}")

    def _require_few_faults(self) -> None:
        """Refuse to report on if more than the permitted share of the rows read so far has one fault."""
        fault, share = self._quality.worst()
        if share > self._interpreter.options.most_faults:
            sent = f"{self._totals.reports:,} reports were" if self._totals.reports else "nothing was"
            raise ReplayError(
                f"of {self._quality.rows:,} rows read, {share:.1%} have one fault: {fault} "
                f"(first at {self._files.describe(self._quality.found[fault].first_rows[0])}); {sent} sent",
                "find out why with --check, or permit it with --most-faults",
            )
