"""One partition of an events topic: its events are held until the edge closes their period, and are then sent.

The topic keeps events, so what is held is only a copy, which the next owner makes again from `restart` on. An event is
in time if it was read before its period was cut. The cut is published before anything is sent: whoever sends a period
again, sends the same.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from memo_store.survey_memos import SurveyMemos
from producers.edge.directory import Counted, EdgeState
from producers.events.interpreting import ANY_ORDER, Options
from producers.events.quality import Fault
from producers.events.sending import Pipeline, Totals
from producers.files import Batch, ColumnMapping
from producers.files.json_events import LINE_SIZE, table_of
from producers.sinks import Sink
from producers.stopping import Stop
from protocols.errors import ReplayError
from protocols.survey import MICROSECOND, micros

SUMMED = ("reports", "repeats", "ineligible", "unlisted", "duplicates")
Read = Callable[[str], dict[str, Any]]


class Record(Protocol):
    """One event, as an object of JSON or a line of CSV: what kafka-python returns, as far as it is read here."""

    offset: int
    key: bytes | None
    value: bytes | None


def csv_line(fields: Sequence[str], delimiter: str) -> Read:
    """Reads a line with these columns, which no header names."""

    def read(text: str) -> dict[str, Any]:
        (row,) = csv.reader([text], delimiter=delimiter, strict=True)
        return dict(zip(fields, row, strict=True))

    return read


def decode(records: Sequence[Record], columns: ColumnMapping, read: Read, encoding: str, where: str) -> Batch:
    """The events of some records of a partition; their offsets are the numbers of rows.

    Raises ReplayError if a record's key is not its person: two partitions would report for one person.
    """
    rows: dict[int, dict[str, Any] | None] = {}
    for record in records:
        try:
            if len(record.value or b"") > LINE_SIZE:
                raise ValueError("no event is so long")
            rows[record.offset] = read((record.value or b"").decode(encoding))
        except (ValueError, csv.Error, RecursionError):
            rows[record.offset] = None
    batch = table_of(rows, columns)
    keys = {record.offset: (record.key or b"").decode(errors="replace").strip() for record in records}
    for offset, person in zip(batch.rows.tolist(), batch.columns[columns.person].to_pylist(), strict=True):
        if person and keys[offset] != person:
            raise ReplayError(
                f"{where}, offset {offset}: the key of the record is not its {columns.person}",
                "write events with the person as key, so that all events of a person are in one partition",
            )
    return batch


@dataclass(frozen=True)
class PartitionState(Counted):
    """One partition of an events topic. Whoever owns it next goes on from here, and reads open periods again."""

    position: int = 0
    """Records before this offset are counted."""
    restart: int = 0
    """The first record with an event of a period that was not sent."""
    ended: int = -1
    """The last period that has ended, by the events of this partition."""
    open: int | None = None
    """The first period with events that were not sent."""
    idle: bool = False
    """Whether nobody waits for it, because no event came for long."""
    cuts: dict[int, int] = field(default_factory=dict)
    """By period that is being sent: the offset from which on its events are late. What is sent again is the same."""


def next_closed(closed: int, partitions: Mapping[int, PartitionState], count: int) -> int:
    """The period through which all partitions send next; `closed` while one has not sent that, or has not ended more.

    A partition that nothing is known of holds all up. Periods without events are closed with the next one.

    >>> ended = {0: PartitionState(ended=5, open=2), 1: PartitionState(ended=3, open=1), 2: PartitionState(idle=True)}
    >>> next_closed(-1, ended, 3), next_closed(-1, ended, 4)
    (1, -1)
    """
    known = [partitions.get(number, PartitionState()) for number in range(count)]
    if any(state.totals.through < closed for state in known):
        return closed
    # If all are idle, nobody holds up the one that is furthest.
    ended = min((state.ended for state in known if not state.idle), default=max(state.ended for state in known))
    first = min((state.open for state in known if state.open is not None), default=ended)
    return max(closed, min(ended, max(first, closed + 1)))


def together(parts: Iterable[Counted]) -> EdgeState:
    """What partitions have counted, as one edge: a period is sent when all of them have sent it."""
    parts, faults, late = list(parts), Counter[str](), Counter[int]()
    for part in parts:
        faults.update(part.faults)
        late.update(part.late)
    sums = {name: sum(getattr(part.totals, name) for part in parts) for name in SUMMED}
    through = min((part.totals.through for part in parts), default=-1)
    totals = Totals(through, max((part.totals.periods for part in parts), default=0), **sums)
    rows, told_apart = (sum(getattr(part, name) for part in parts) for name in ("rows", "told_apart"))
    return EdgeState(totals=totals, rows=rows, told_apart=told_apart, faults=dict(faults), late=dict(late))


class PartitionEdge:
    """A partition that this process owns."""

    def __init__(
        self, memos: SurveyMemos, sink: Sink, options: Options, directory: Path, state: PartitionState
    ) -> None:
        self.at = state.restart
        """The offset of the next record."""
        self._lateness = options.tolerance
        self._events = Pipeline(memos, sink, replace(options, tolerance=ANY_ORDER), None)  # cuts decide what is late
        self.state = state.begun(self._events)
        self._events.open(directory)
        self._interpreter = self._events.interpreter
        self._firsts: dict[int, int] = {}  # by period that is held: the offset of its first event

    def take(self, records: Sequence[Record], decode: Callable[[Sequence[Record], ColumnMapping], Batch]) -> None:
        """Hold the events of some records. Those that an earlier owner has counted are not counted again."""
        begin = sum(record.offset < self.state.position for record in records)
        for part in (records[:begin], records[begin:]):
            if part:
                self._take(decode(part, self._interpreter.columns), part[-1].offset + 1)

    def _take(self, batch: Batch, after: int) -> None:
        quality = self.state.quality
        self._interpreter.refuse_future()
        each = self._interpreter.read(batch, quality).one_by_one()
        closed = np.full(len(each.rows), self.state.totals.through)
        for period, cut in sorted(self.state.cuts.items()):
            closed[each.rows >= cut] = period
        events, periods = self._events.hold(each, after=closed)
        for period in np.unique(periods).tolist():
            self._firsts.setdefault(period, int(events["row"][periods == period].min()))
        self.at = after
        if after <= self.state.position:
            return
        late = each.usable & (each.period <= closed)
        quality.note(Fault.LATE, each.rows[late])
        watermark = max(self._interpreter.watermark - self._lateness // MICROSECOND, self._interpreter.start - 1)
        ended = max(self.state.ended, self._interpreter.calendar.closed(watermark))
        self.state = replace(self.state.counting(quality, each.period[late]), ended=ended, idle=False)
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
        fresh = dict.fromkeys(self._events.ended(through), self.at)
        self.state = replace(self.state, cuts={**fresh, through: self.at, **self.state.cuts})

    def send(self, through: int, stop: Stop) -> None:
        """Send all periods up to one, and erase what is held of them."""
        state = self.state
        for period in self._events.ended(through):
            state = replace(state, totals=self._events.send(period, state.totals, state.quality, stop))
            self._events.spool.drop(period)
            self._firsts.pop(period)
        kept = {period: cut for period, cut in state.cuts.items() if period > through}
        self.state = replace(state, totals=replace(state.totals, through=through), cuts=kept)
        self._held()

    def close(self) -> None:
        self._events.spool.abandon()

    def _held(self) -> None:
        position = max(self.at, self.state.position)
        restart, first = min(self._firsts.values(), default=position), min(self._firsts, default=None)
        self.state = replace(self.state, position=position, restart=restart, open=first)
