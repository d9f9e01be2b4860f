"""From events to reports: what a replay and an edge have in common."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memo_store.sealing import Sealer
from memo_store.survey_memos import SurveyMemos
from producers.events.choosing import Chooser, event_type
from producers.events.interpreting import Events, Interpreter, Options
from producers.events.quality import Fault, Quality
from producers.events.spool import Held, Spool
from producers.reporting import Reporter
from producers.scenarios.base import Presences
from producers.sinks import Sink, SourceClock
from producers.stopping import Stop
from protocols.arrays import Whole
from protocols.respondent import UNKNOWN


@dataclass(frozen=True)
class Totals:
    """What was counted in the periods reported so far."""

    through: int = -1
    periods: int = 0
    reports: int = 0
    """Sent by this or an earlier attempt: one per person and period."""
    repeats: int = 0
    """Of these, found to be delivered already."""
    ineligible: int = 0
    """Not sent, one per person and period: the period was closed, or the person had reported a later one."""
    unlisted: int = 0
    """Of people and periods, those without a listed value of some attribute: `other` or a drawn one stands for it."""
    duplicates: int = 0
    first_duplicates: tuple[int, ...] = ()


class Pipeline:
    """Events of a survey on their way: read, held until their period ends, and sent as reports.

    First `send`, then the caller stores the totals, then `close`. A crash between any two of them is repaired by doing
    it again: the reports are the same, and each is counted once. `close` also closes periods whose grace has ended, if
    there is a clock.
    """

    spool: Spool

    def __init__(self, memos: SurveyMemos, sink: Sink, options: Options, clock_key: bytes | None) -> None:
        scheme, keyring = memos.respondent.scheme, memos.respondent.keyring
        survey = scheme.survey
        self.interpreter = Interpreter(survey, options, keyring)
        self.sealer = Sealer(keyring, f"events {survey.id}", scheme.fingerprint)
        self._memos, self._respondent = memos, memos.respondent
        self.forgets = memos.keys.forget_after is not None
        self._clock = None if clock_key is None else SourceClock(survey, clock_key, sink)
        self._reporter = Reporter(memos, memos.presence, sink)
        self._chooser = Chooser(survey.attributes, options.rules, options.columns.positions)
        self._restored = not self._chooser.stays
        self.meaning = scheme.fingerprint, self.interpreter.columns, self._chooser.rules
        """What decides which reports events become."""

    def open(self, directory: Path, held: Held | None = None) -> None:
        """Hold events in a directory, from now on. Raises BlockingIOError if another process does."""
        of_period = self._sealer_of if self.forgets else None
        self.spool = Spool(directory, self.interpreter.attributes, self.sealer, held, of_period)

    def hold(self, read: Events, after: int | Whole) -> tuple[NDArray[np.void], Whole]:
        """Hold the usable events of periods after one (of each row). Returns them, and their periods."""
        events = np.empty(len(read.rows), dtype=event_type(self.interpreter.attributes))
        events["row"], events["device"], events["time"] = read.rows, read.devices, read.time
        events["values"] = read.values
        wanted = read.usable & (read.period > after)
        self.spool.add(events[wanted], read.period[wanted])
        return events[wanted], read.period[wanted]

    def ended(self, through: int) -> list[int]:
        """The periods up to this one of which events are held."""
        return [period for period in self.spool.periods if period <= through]

    def send(self, period: int, so_far: Totals, quality: Quality, stop: Stop) -> Totals:
        """Send a period's reports. Its duplicates are noted in `quality`."""
        self.advance(period)
        if not self._restored and so_far.through >= 0:  # an earlier process has sent the period before
            if not self._forgotten(so_far.through):
                self._chooser.stays.restore(self.spool.cells(so_far.through))
        elif self._forgotten(so_far.through):
            self._chooser.stays.forget()  # or what is reported would depend on whether the process was started again
        self._restored = True
        totals = replace(so_far, through=period, periods=so_far.periods + 1)
        for events in self.spool.read(period, partial(self._respondent.tokens, period=period)):
            devices, values, again = self._chooser.choose(events)
            quality.note(Fault.DUPLICATE, again)
            quality.check()
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
        if self._chooser.stays:
            self.spool.keep_cells(period, self._chooser.stays.keep())
        found = quality.found[Fault.DUPLICATE]
        return replace(totals, duplicates=found.count, first_duplicates=found.first_rows)

    def close(self, period: int) -> None:
        """Erase what was held of a sent period, and close periods."""
        self.spool.drop(period)
        self.spool.drop_cells(but=period)
        self.advance(period + 1)
        self._memos.finish(period)

    def _sealer_of(self, period: int) -> Sealer:
        """What is held of a period is sealed under its key, and cannot be read when that is forgotten."""
        return self.sealer.of_period(self._memos.keys.ring(period))

    def _forgotten(self, period: int) -> bool:
        """Whether the key of people's last cells, which were kept after a period, is forgotten."""
        return self.forgets and period < self._memos.keys.first

    def advance(self, period: int) -> None:
        """Close what has ended, with its grace, when a period begins."""
        if self._clock is not None:
            self._clock.advance(period)

    def finish(self, through: int) -> None:
        """Close all periods up to the last one that was sent: no reports follow."""
        if self._clock is not None:
            self._clock.finish(through)
        self._memos.finish(through)  # what an attempt that died may have left to do
