"""One partition of an events topic: its events are held until the edge closes their period, and are then sent.

The topic keeps events, so what is held is only a copy, which the next owner makes again from `restart` on. An event is
in time if it was read before its period was cut. The cut is published before anything is sent: whoever sends a period
again, sends the same.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from memo_store.sealing import Sealer
from memo_store.survey_memos import SurveyMemos
from producers.edge.directory import AHEAD
from producers.edge.records import Record
from producers.edge.state import PartitionState
from producers.events.choosing import Chooser
from producers.events.interpreting import ANY_ORDER, Interpreter, Options
from producers.events.people import People
from producers.events.quality import Fault, Found, Quality
from producers.events.sending import PeriodSender, Totals
from producers.events.spool import AT_ONCE, Spool
from producers.files import Batch, EventFiles
from producers.sinks.base import Sink
from producers.stopping import Stop
from protocols.survey import MICROSECOND, micros


class PartitionEdge:
    """A partition that this process owns."""

    def __init__(
        self,
        memos: SurveyMemos,
        sink: Sink,
        options: Options,
        directory: Path,
        state: PartitionState,
        *,
        now: Callable[[], datetime],
        at_once: int = AT_ONCE,
    ) -> None:
        scheme, keyring = memos.respondent.scheme, memos.respondent.keyring
        survey = scheme.survey
        self.state = state
        self.at = state.restart
        """The offset of the next record."""
        self._lateness: timedelta = options.tolerance
        self._form = options.form
        self._interpreter = Interpreter(survey, replace(options, tolerance=ANY_ORDER))  # cuts decide what is late
        self._people = People(keyring)
        self._now = now
        sealer = Sealer(keyring, f"events {survey.id}", scheme.fingerprint)
        self._spool = Spool(directory, len(survey.attributes), sealer, at_once)
        chooser = Chooser(survey.attributes, options.rules, options.columns.positions)
        self._sender = PeriodSender(memos, sink, None, chooser, self._spool)
        self._firsts: dict[int, int] = {}  # by period that is held: the offset of its first event

    def take(self, records: Sequence[Record], decode: Callable[[Sequence[Record]], Batch]) -> None:
        """Hold the events of some records. Those that an earlier owner has counted are not counted again."""
        new = [record.offset >= self.state.position for record in records]
        begin = new.index(True) if True in new else len(records)
        for part in (records[:begin], records[begin:]):
            if part:
                self._take(decode(part), part[-1].offset + 1)

    def _take(self, batch: Batch, after: int) -> None:
        calendar, quality = self._interpreter.calendar, self._quality(self.state.totals)
        self._interpreter.until = min(calendar.end(calendar.last), micros(self._now()) + AHEAD // MICROSECOND)
        each = self._interpreter.read(batch, quality).one_by_one()
        closed = np.full(len(each.rows), self.state.totals.through)
        for period, cut in sorted(self.state.cuts.items()):
            closed[each.rows >= cut] = period
        events, periods = each.spooled(self._people.devices(each.persons), after=closed)
        self._spool.add(events, periods)
        for period in np.unique(periods).tolist():
            self._firsts.setdefault(period, int(events["row"][periods == period].min()))
        self.at = after
        if after <= self.state.position:
            return
        late = Counter(each.period[each.usable & (each.period <= closed)].tolist())
        found = Counter({fault.name: count.count for fault, count in quality.found.items()})
        found.pop(Fault.DUPLICATE.name)
        found[Fault.LATE.name] += late.total()
        watermark = max(self._interpreter.watermark - self._lateness // MICROSECOND, self._interpreter.start - 1)
        self.state = replace(
            self.state,
            rows=self.state.rows + quality.rows,
            told_apart=self.state.told_apart + quality.told_apart,
            faults=dict(Counter(self.state.faults) + found),
            late=dict(Counter(self.state.late) + late),
            ended=max(self.state.ended, calendar.closed(watermark)),
            idle=False,
        )
        self._held()

    @property
    def caught_up(self) -> bool:
        """Whether all is held again that an earlier owner has held: nothing may be cut or sent before."""
        return self.at >= self.state.position

    def end(self, moment: datetime) -> None:
        """No event before this moment follows."""
        self.state = replace(self.state, ended=max(self.state.ended, self._interpreter.calendar.closed(micros(moment))))

    def pause(self) -> None:
        """Nobody waits for this partition until its next event."""
        self.state = replace(self.state, idle=True)

    def cut(self, through: int) -> None:
        """What is read from now on of these periods is late. To be published before they are sent."""
        fresh = {period: self.at for period in self._spool.periods if period <= through}
        self.state = replace(self.state, cuts={**fresh, through: self.at, **self.state.cuts})

    def send(self, through: int, stop: Stop) -> None:
        """Send all periods up to one, and erase what is held of them."""
        totals = self.state.totals
        for period in [period for period in self._spool.periods if period <= through]:
            totals = self._sender.send(period, totals, self._quality(totals), stop)
            self._spool.drop(period)
            self._firsts.pop(period)
        kept = {period: cut for period, cut in self.state.cuts.items() if period > through}
        self.state = replace(self.state, totals=replace(totals, through=through), cuts=kept)
        self._held()

    def close(self) -> None:
        for period in self._spool.periods:
            self._spool.drop(period)
        self._spool.close()

    def _held(self) -> None:
        position = max(self.at, self.state.position)
        restart, first = min(self._firsts.values(), default=position), min(self._firsts, default=None)
        self.state = replace(self.state, position=position, restart=restart, open=first)

    def _quality(self, totals: Totals) -> Quality:
        quality = Quality(EventFiles([], self._form))
        quality.found[Fault.DUPLICATE] = Found(totals.duplicates)
        return quality
