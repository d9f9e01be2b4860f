"""Periods that have ended become reports: what a replay and an edge have in common."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from memo_store.survey_memos import SurveyMemos
from producers.events.choosing import Chooser
from producers.events.quality import Fault, Quality
from producers.events.spool import Spool
from producers.reporting import Reporter
from producers.scenarios.base import Presences
from producers.sinks.base import Sink
from producers.source_clock import SourceClock
from producers.stopping import Stop
from protocols.respondent import UNKNOWN


@dataclass(frozen=True)
class Totals:
    """What was counted in the periods reported so far."""

    through: int = -1
    periods: int = 0
    reports: int = 0
    repeats: int = 0
    ineligible: int = 0
    unlisted: int = 0
    duplicates: int = 0
    first_duplicates: tuple[int, ...] = ()


class PeriodSender:
    """Sends the reports of spooled periods, and closes those whose grace has ended, if it has the clock.

    First `send`, then the caller stores the totals, then `close`. A crash between any two of them is repaired by doing
    it again: the reports are the same, and each is counted once.
    """

    def __init__(
        self, memos: SurveyMemos, sink: Sink, clock: SourceClock | None, chooser: Chooser, spool: Spool
    ) -> None:
        self._memos, self._respondent = memos, memos.respondent
        self._clock = clock
        self._reporter = Reporter(memos, memos.presence, sink)
        self._chooser = chooser
        self._spool = spool
        self._restored = not chooser.stays

    def send(self, period: int, so_far: Totals, quality: Quality, stop: Stop) -> Totals:
        """Send a period's reports. Its duplicates are noted in `quality`."""
        self.advance(period)
        if not self._restored and so_far.through >= 0:  # an earlier process has sent the period before
            self._chooser.stays.restore(self._spool.cells(so_far.through))
        self._restored = True
        totals = replace(so_far, through=period, periods=so_far.periods + 1)
        for events in self._spool.read(period, partial(self._respondent.tokens, period=period)):
            chosen = self._chooser.choose(events)
            quality.note(Fault.DUPLICATE, chosen.again)
            quality.check()
            single = [places == UNKNOWN for places in chosen.values.values() if places.ndim == 1]
            unlisted = int(np.any(single, axis=0).sum()) if single else 0
            reported = self._reporter.report(Presences(period, chosen.devices, chosen.values), stop=stop)
            totals = replace(
                totals,
                reports=totals.reports + reported.sent + reported.repeats,
                repeats=totals.repeats + reported.repeats,
                ineligible=totals.ineligible + reported.ineligible,
                unlisted=totals.unlisted + unlisted,
            )
        if self._chooser.stays:
            self._spool.keep_cells(period, self._chooser.stays.keep())
        found = quality.found[Fault.DUPLICATE]
        return replace(totals, duplicates=found.count, first_duplicates=found.first_rows)

    def close(self, period: int) -> None:
        """Erase what was held of a sent period, and close periods."""
        self._spool.drop(period)
        self._spool.drop_cells(but=period)
        self.advance(period + 1)
        self._memos.finish(period)

    def advance(self, period: int) -> None:
        """Close what has ended, with its grace, when a period begins."""
        if self._clock is not None:
            self._clock.advance(period)

    def finish(self, through: int) -> None:
        """Close all periods up to the last one that was sent: no reports follow."""
        if self._clock is not None:
            self._clock.finish(through)
        self._memos.finish(through)  # what an attempt that died may have left to do
