"""The replay itself: events in, one report per person and period out.

    files ─► batches ─► devices, times, values ─► spool per period ─► end of period + tolerance ─► choice ─► reports

An event that is read after the end of its period plus the tolerance is late: it is counted and left out. All of this is
a function of the files alone, so a second run makes the same reports.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from memo_store.survey_memos import SurveyMemos
from producers.files import Batch, EventFiles
from producers.replay.choosing import Rule, choose, event_type, without_duplicates
from producers.replay.interpreting import Interpreter, Options
from producers.replay.people import People
from producers.replay.quality import Fault, Found, Located, Quality
from producers.replay.spool import AT_ONCE, Spool
from producers.replay.stays import Stays
from producers.reporting import Reporter
from producers.scenarios.base import Presences
from producers.sinks.base import Sink
from producers.source_clock import SourceClock
from producers.stopping import Stop, never
from protocols.errors import ReplayError, Stopped
from protocols.respondent import UNKNOWN
from servers.private_files import private_directory, read_limited, write_private

SECOND = 1_000_000
LONGEST_NAP = 0.2
ProgressCallback = Callable[[float, int, int], None]
"""Called with the share of the files that was read, the rows read and the reports made so far."""


@dataclass(frozen=True)
class Totals:
    """What was counted in the periods reported so far, and kept in a file of the workspace.

    Repeating a replay is safe without this checkpoint; it only saves work. It belongs to some event files, one survey
    and one set of options: its name is their hash (`EventFiles.identity`).
    """

    through: int = -1
    periods: int = 0
    reports: int = 0
    repeats: int = 0
    ineligible: int = 0
    unlisted: int = 0
    duplicates: int = 0
    first_duplicates: tuple[int, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Totals:
        """The totals so far; zero if there is no file."""
        try:
            return cls(**json.loads(read_limited(path)))
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError):
            raise ReplayError(f"{path} is damaged", "remove it, and the files are replayed again") from None

    def write(self, path: Path) -> None:
        private_directory(path.parent)
        write_private(path, json.dumps(asdict(self)))


@dataclass(frozen=True)
class Summary:
    """What was in the files, and what was reported."""

    rows: int
    people: int
    people_exact: bool
    periods: int
    reports: int
    """Sent by this or an earlier attempt: one per person and period."""
    repeats: int
    """Of these, found to be delivered already."""
    ineligible: int
    """Not sent, one per person and period: the period was closed, or the person had reported a later one."""
    unlisted: int
    """Of people and periods, those without a listed value of some attribute: `other` or a drawn one stands for it."""
    faults: dict[Fault, Located]


class Pace:
    """Event time runs `speed` times as fast as real time; without a speed, there are no waits."""

    def __init__(
        self,
        speed: float | None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._speed = speed
        self._now = now
        self._sleep = sleep
        self._origin: tuple[float, float] | None = None

    def wait_for(self, moment: float, stop: Stop) -> None:
        """Wait until event time is at `moment` (in seconds), or the user asks to stop. The first call never waits."""
        if self._speed is None:
            return
        if self._origin is None:
            self._origin = (moment, self._now())
        began, at = self._origin
        while not stop() and (left := at + (moment - began) / self._speed - self._now()) > 0:
            self._sleep(min(left, LONGEST_NAP))


class Replay:
    """One replay of some files for one survey.

    `workspace` holds events until their period ends, and the checkpoint from which a second attempt continues. It holds
    true values, so it must be as private as the event files.
    """

    def __init__(
        self,
        memos: SurveyMemos,
        sink: Sink,
        paths: Sequence[Path],
        options: Options,
        workspace: Path,
        *,
        clock_key: bytes | None = None,
        pace: Pace | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        self._memos, self._respondent = memos, memos.respondent
        scheme, keyring = self._respondent.scheme, self._respondent.keyring
        survey = scheme.survey
        self._strict, self._most_faults = options.strict, options.most_faults
        self._files = EventFiles(paths, options.form)
        self._quality = Quality(self._files)
        self._interpreter = Interpreter(survey, options, self._quality)
        usual = {a.name: Rule.LAST if a.several is None else Rule.EVERY for a in survey.attributes}
        for name, rule in options.rules.items():
            if Rule.EVERY in (rule, usual[name]) and rule is not usual[name]:
                raise ReplayError(f"{name}: `every` value is for sets, and for nothing else", "leave --choose out")
        self._rules = {**usual, **options.rules}
        self._clock = SourceClock(survey, clock_key, sink)
        self._reporter = Reporter(memos, memos.presence, sink)
        self._pace = pace or Pace(None)
        self._people = People(keyring)
        name = self._files.identity(
            scheme.fingerprint, keyring.key(("replay",)), self._interpreter.columns, self._rules, options.meaning
        )
        try:
            self._spool = Spool(workspace / f"{name}.spool", len(survey.attributes), at_once)
        except BlockingIOError:
            raise ReplayError(f"another process is replaying {paths[0]}", "wait until it ends") from None
        self._checkpoint = workspace / f"{name}.json"
        self._totals = Totals.read(self._checkpoint)
        self._stays = Stays(survey.attributes, options.columns.positions, workspace, name)
        self._quality.found[Fault.DUPLICATE] = Found(self._totals.duplicates, tuple(self._totals.first_duplicates))

    def run(self, progress: ProgressCallback = lambda share_read, rows, reports: None, stop: Stop = never) -> Summary:
        """Replay the files. Events of periods that an earlier attempt has reported are read, but not reported again."""
        try:
            for batch in self._files.batches(self._interpreter.columns):
                self._take(batch)
                self._report(self._interpreter.last_ended, stop)
                progress(batch.share_read, self._quality.rows, self._totals.reports)
            self._report(max(self._spool.periods, default=-1), stop)
            self._clock.finish(self._totals.through)
            self._memos.finish(self._totals.through)  # what an attempt that died may have left to do
            self._stays.forget()
        except Stopped as stopped:
            raise Stopped(stopped.message, "run the same command again to continue from there") from None
        finally:
            self._spool.close()
        return Summary(
            self._quality.rows,
            self._people.seen.count(),
            self._people.seen.exact,
            self._totals.periods,
            self._totals.reports,
            self._totals.repeats,
            self._totals.ineligible,
            self._totals.unlisted,
            self._quality.located(),
        )

    def _take(self, batch: Batch) -> None:
        """Add a batch's usable events to the spool."""
        read = self._interpreter.read(batch).one_by_one()
        events = np.empty(len(read.rows), dtype=event_type(len(self._rules)))
        events["row"], events["time"], events["values"] = read.rows, read.time, read.values
        events["device"] = self._people.devices(read.persons)
        wanted, period = read.usable & (read.period > self._totals.through), read.period
        if not wanted.all():
            events, period = events[wanted], period[wanted]
        self._spool.add(events, period)

    def _report(self, through: int, stop: Stop) -> None:
        """Report the spooled periods up to `through`, and close those whose grace has ended."""
        for period in [p for p in self._spool.periods if p <= through]:
            self._require_few_faults()
            self._pace.wait_for((self._interpreter.calendar.end(period) + self._interpreter.tolerance) / SECOND, stop)
            self._clock.advance(period)
            self._stays.begin(self._totals.through)
            totals = replace(self._totals, through=period, periods=self._totals.periods + 1)
            for events in self._spool.take(period, partial(self._respondent.tokens, period=period)):
                events, again = without_duplicates(events)
                self._quality.note(Fault.DUPLICATE, again)
                if self._strict:
                    self._quality.require_none()
                self._stays.settle(events)
                devices, values = choose(events, self._rules)
                self._stays.fill(devices, values)
                self._stays.note(devices, values)
                single = [places == UNKNOWN for places in values.values() if places.ndim == 1]
                unlisted = int(np.any(single, axis=0).sum()) if single else 0
                reported = self._reporter.report(Presences(period, devices, values), stop=stop)
                totals = replace(
                    totals,
                    reports=totals.reports + reported.sent + reported.repeats,
                    repeats=totals.repeats + reported.repeats,
                    ineligible=totals.ineligible + reported.ineligible,
                    unlisted=totals.unlisted + unlisted,
                )
            found = self._quality.found[Fault.DUPLICATE]
            self._totals = replace(totals, duplicates=found.count, first_duplicates=found.first_rows)
            self._stays.keep(period)
            self._totals.write(self._checkpoint)
            self._stays.forget(but=period)
            self._clock.advance(period + 1)
            self._memos.finish(period)
            if stop():
                raise Stopped(f"stopped after period {period}")

    def _require_few_faults(self) -> None:
        """Refuse to report on if more than the permitted share of the rows read so far has one fault."""
        fault, share = self._quality.worst()
        if share > self._most_faults:
            sent = f"{self._totals.reports:,} reports were" if self._totals.reports else "nothing was"
            raise ReplayError(
                f"of {self._quality.rows:,} rows read, {share:.1%} have one fault: {fault} "
                f"(first at {self._files.describe(self._quality.found[fault].first_rows[0])}); {sent} sent",
                "find out why with --check, or permit it with --most-faults",
            )
