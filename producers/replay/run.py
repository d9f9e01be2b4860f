"""The replay itself: events in, one report per person and period out.

    file ─► batches ─► devices, times, values ─► spool per period ─► end of period + tolerance ─► choice ─► reports

The watermark is the latest event time read so far. A period ends when the watermark is at its end plus the tolerance;
an event of the period that is read after that is late: it is counted and left out. All of this is a function of the
file alone, not of its batches, so a second run makes the same reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from memo_store.survey_memos import SurveyMemos
from producers.replay.answers import UNKNOWN, places
from producers.replay.checkpoint import Checkpoint, identity
from producers.replay.choosing import Rule, choose, event_type, without_duplicates
from producers.replay.event_files import Batch, ColumnMapping, open_events
from producers.replay.pace import Pace
from producers.replay.people import People
from producers.replay.quality import Fault, Found, Quality
from producers.replay.spool import AT_ONCE, Spool
from producers.replay.times import BAD, moments
from producers.reporting import Reporter
from producers.scenarios.base import Presences
from producers.sinks.base import Sink
from producers.source_clock import SourceClock
from producers.stopping import Stop, never
from protocols.errors import ReplayError, Stopped
from protocols.randomness import Devices, Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import MAX_PERIOD, Survey

Whole = NDArray[np.int64]
Moment = TypeVar("Moment", int, Whole)
SECOND = 1_000_000
MOST_TOLERANCE = 1 << 60
"""In microseconds: more than the distance between any two valid times."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Options:
    """How events are read, and how values are chosen."""

    columns: ColumnMapping
    tolerance: timedelta = timedelta(0)
    """How far events may be out of order: an event may follow events that are later by up to this much."""
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """Which of a period's values is reported, per attribute; by default the last one."""
    zone: ZoneInfo | None = None
    """The zone of times that have none."""
    until: datetime | None = None
    """Times from here on are bad: a single event in the year 2999 would end all periods before it."""
    delimiter: str = ","
    quotes: bool = True
    """Whether quotes enclose cells; if not, they are text."""
    strict: bool = False


@dataclass(frozen=True)
class Progress:
    """How far a replay has come: the share of the file that was read, and the reports made so far."""

    share_read: float
    rows: int
    period: int
    reports: int


@dataclass(frozen=True)
class Summary:
    """What was in the file, and what was reported."""

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
    incomplete: int
    """Not sent, one per person and period: no event had a known value of what must be reported."""
    faults: dict[Fault, Found]


class Replay:
    """One replay of one file for one survey.

    `workspace` holds events until their period ends, and the checkpoint from which a second attempt continues. It holds
    true values, so it must be as private as the event file.
    """

    def __init__(
        self,
        scheme: Scheme,
        keyring: Keyring,
        memos: SurveyMemos,
        sink: Sink,
        path: Path,
        options: Options,
        workspace: Path,
        *,
        clock_key: bytes | None = None,
        pace: Pace | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        survey = scheme.survey
        self._survey = survey
        self._options = options
        for attribute in (*options.columns.attributes, *options.rules):
            survey.index(attribute)  # refuses an attribute that the survey does not have
        self._columns = _every_attribute(options.columns, survey)
        self._rules = {a.name: options.rules.get(a.name, Rule.LAST) for a in survey.attributes}
        self._clock = SourceClock(survey, clock_key, sink)
        self._respondent = Respondent(scheme, keyring)
        self._reporter = Reporter(self._respondent, memos, memos.presence, sink)
        self._pace = pace or Pace(None)
        self._people = People(keyring)
        self._quality = Quality(options.strict)
        self._rows = 0

        self._start = _microseconds(survey.start)
        self._period = survey.period // timedelta(microseconds=1)
        self._tolerance = min(options.tolerance // timedelta(microseconds=1), MOST_TOLERANCE)
        last = self._start + (MAX_PERIOD + 1) * self._period
        self._until = min(last, _microseconds(options.until)) if options.until else last
        self._watermark = int(BAD)

        self._file = open_events(path, options.delimiter, options.quotes)
        how = (self._columns, self._rules, options.tolerance, options.zone, options.delimiter, options.quotes)
        name = identity(path, scheme.fingerprint, keyring.key(("replay",)), how)
        try:
            self._spool = Spool(workspace / f"{name}.spool", len(scheme.questions), at_once)
        except BlockingIOError:
            raise ReplayError(f"another process is replaying {path}", "wait until it ends") from None
        self._checkpoint = Checkpoint(workspace / f"{name}.json")
        self._totals = self._checkpoint.read()
        self._quality.found[Fault.DUPLICATE] = Found(self._totals.duplicates, tuple(self._totals.first_duplicates))

    def run(self, progress: Callable[[Progress], None] = lambda _: None, stop: Stop = never) -> Summary:
        """Replay the file. Events of periods that an earlier attempt has reported are read, but not reported again."""
        try:
            for batch in self._file.batches(self._columns):
                self._take(batch)
                self._report(self._last_ended(), stop)
                progress(Progress(batch.share_read, self._rows, self._totals.through, self._totals.reports))
            self._report(max(self._spool.periods, default=-1), stop)
            self._clock.advance(self._totals.through + 1 + self._clock.lag)
        except Stopped as stopped:
            raise Stopped(stopped.message, "run the same command again to continue from there") from None
        finally:
            self._spool.close()
        return self._summary()

    def _take(self, batch: Batch) -> None:
        """Add a batch's valid events to the spool, and count the faults of the others."""
        self._rows += len(batch.lines) + len(batch.malformed)
        self._quality.note(Fault.MALFORMED, batch.malformed)
        named = np.asarray(pc.not_equal(batch.columns[self._columns.person], ""))
        self._quality.note(Fault.MALFORMED, batch.lines[~named], f"column {self._columns.person}")
        batch = batch.only(named)
        time, period, in_time = self._timing(batch)
        events = np.empty(len(batch.lines), dtype=event_type(len(self._rules)))
        events["line"], events["time"] = batch.lines, time
        events["device"] = self._people.devices(batch.columns[self._columns.person])
        for i, attribute in enumerate(self._survey.attributes):
            column = self._columns.attributes[attribute.name]
            found = places(batch.columns[column], attribute)
            self._quality.note(Fault.UNKNOWN_VALUE, batch.lines[found == UNKNOWN], f"column {column}")
            events["values"][:, i] = found
        wanted = in_time & (period > self._totals.through)
        self._spool.add(events[wanted], period[wanted])

    def _timing(self, batch: Batch) -> tuple[Whole, Whole, NDArray[np.bool_]]:
        """Each event's time and period, and whether it is valid and not late. Advances the watermark."""
        time = moments(batch.columns[self._columns.time], self._options.zone)
        good = (time != BAD) & (time >= self._start) & (time < self._until)
        self._quality.note(Fault.BAD_TIME, batch.lines[~good], f"column {self._columns.time}")
        watermark = np.maximum.accumulate(np.maximum(np.where(good, time, BAD), self._watermark))
        self._watermark = int(watermark[-1]) if len(watermark) else self._watermark
        period = (np.where(good, time, self._start) - self._start) // self._period
        late = good & (self._end(period) + self._tolerance <= watermark)
        self._quality.note(Fault.LATE, batch.lines[late])
        return time, period, good & ~late

    def _end(self, period: Moment) -> Moment:
        return self._start + (period + 1) * self._period

    def _last_ended(self) -> int:
        """The last period whose end plus the tolerance is not after the watermark."""
        return (self._watermark - self._tolerance - self._start) // self._period - 1

    def _report(self, through: int, stop: Stop) -> None:
        """Report the spooled periods up to `through`, and close those whose grace has ended."""
        for period in [p for p in self._spool.periods if p <= through]:
            self._pace.wait_for((self._end(period) + self._tolerance) / SECOND, stop)
            self._clock.advance(period)
            totals = replace(self._totals, through=period, periods=self._totals.periods + 1)
            for events in self._spool.take(period, partial(self._respondent.tokens, period=period)):
                events, again = without_duplicates(events)
                self._quality.note(Fault.DUPLICATE, again)
                devices, values = choose(events, self._rules)
                rows = np.flatnonzero(self._answerable(devices, values))
                presences = Presences(period, devices[rows], {name: column[rows] for name, column in values.items()})
                reported = self._reporter.report(presences, stop=stop)
                totals = replace(
                    totals,
                    reports=totals.reports + reported.sent + reported.repeats,
                    repeats=totals.repeats + reported.repeats,
                    ineligible=totals.ineligible + reported.ineligible,
                    incomplete=totals.incomplete + len(devices) - len(rows),
                )
            found = self._quality.found[Fault.DUPLICATE]
            self._totals = replace(totals, duplicates=found.count, first_duplicates=found.first_lines)
            self._checkpoint.write(self._totals)
            self._clock.advance(period + 1)
            if stop():
                raise Stopped(f"stopped after period {period}")

    def _answerable(self, devices: Devices, values: dict[str, Whole]) -> NDArray[np.bool_]:
        """Which devices have a known value of everything that they answer.

        The same rule holds where a device only reports its presence (one_in): if those who do not answer could report
        without a value, those who answer would not be a random part of all who report.
        """
        known = np.stack([values[name] != UNKNOWN for name in self._rules], axis=1)
        if self._reporter.scheme.discloses:
            return np.asarray(known[np.arange(len(devices)), self._respondent.sampled(devices)])
        return np.asarray(known.all(axis=1))

    def _summary(self) -> Summary:
        return Summary(
            self._rows,
            self._people.count(),
            self._people.exact,
            self._totals.periods,
            self._totals.reports,
            self._totals.repeats,
            self._totals.ineligible,
            self._totals.incomplete,
            self._quality.found,
        )


def _every_attribute(columns: ColumnMapping, survey: Survey) -> ColumnMapping:
    """The mapping with every attribute of the survey: by default from the column with the attribute's name."""
    attributes = {a.name: columns.attributes.get(a.name, a.name) for a in survey.attributes}
    return replace(columns, attributes=attributes)


def _microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)
