"""Gathering reports for a few milliseconds, and writing them in one thread: an answer waits until they are durable.

While one batch is written the next one is gathered, so the time of a write is not lost. What waits is bounded; beyond
that nothing is taken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import structlog

from gateway.door.gathering import Cut, cut_rows
from gateway.door.judging import closing_time
from gateway.service.holding import Holder
from gateway.service.metrics import Metrics
from gateway.service.tickets import Outcome, Ticket, row_reject
from protocols.errors import DeliveryError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import Frame, Lookup, ReportRow

GATHER_SECONDS = 0.005
MOST_WAITING = 200_000
"""Reports that are gathered or being written; a report takes about half a kilobyte while it waits."""
ROWS_AT_ONCE = 20_000
TEND_SECONDS = 1.0
log = structlog.get_logger(__name__)


class Log(Protocol):
    """Where frames are written. All methods but `closed_through` are called by one thread."""

    @property
    def partitions(self) -> int: ...

    def write(self, frames: list[tuple[int, bytes]]) -> None:
        """Write frames, each to its partition; they are durable on return. Raises DeliveryError if they may not be."""
        ...

    def tend(self) -> None:
        """What is to be done from time to time, whether or not there is something to write."""
        ...

    def closed_through(self, survey: str) -> int:
        """The last period of a survey that is known to be closed; -1 if none is."""
        ...

    def close(self) -> None: ...


@dataclass
class _Group:
    """Reports that fit in one frame: of one survey and period, with the same attributes answered."""

    scheme: Scheme
    period: int
    rows: list[ReportRow] = field(default_factory=list)
    owners: list[tuple[Ticket, int]] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    frame_owners: list[Ticket] = field(default_factory=list)


@dataclass(frozen=True)
class _Written:
    group: _Group
    cut: Cut
    outcome: Outcome


class Writer:
    """Takes judged reports in the event loop, writes them in a thread, and settles their tickets in the event loop."""

    def __init__(
        self,
        log: Log,
        lookup: Lookup,
        metrics: Metrics,
        now: Callable[[], float] = time.time,
        holder: Holder | None = None,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.waiting = 0
        self.failed: BaseException | None = None
        """What ended the writing for good; the process must end."""
        self.delivering = True
        """Whether the last write succeeded."""
        self._log = log
        self._lookup = lookup
        self._metrics = metrics
        self._now = now
        self._holder = holder
        self._most_waiting = most_waiting
        self._thread = ThreadPoolExecutor(1, "writer")
        self._groups: dict[tuple[str, int, tuple[str, ...]], _Group] = {}
        self._gathered = 0
        self._writing = self._due = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tending: Future[None] | None = None
        self._ended = asyncio.Event()

    def start(self) -> None:
        """Begin to tend the log."""
        self._loop = asyncio.get_running_loop()
        self._tend()

    def has_room(self, reports: int) -> bool:
        return self.failed is None and self.waiting + reports <= self._most_waiting

    def add_row(self, row: ReportRow, scheme: Scheme, ticket: Ticket, place: int) -> None:
        group = self._group(row.header.survey, row.header.period, row.answered, scheme)
        group.rows.append(row)
        group.owners.append((ticket, place))
        self._gather(1)

    def add_frame(self, frame: Frame, scheme: Scheme, ticket: Ticket) -> None:
        """The ticket has a place for each row."""
        group = self._group(frame.survey, frame.period, tuple(frame.answers), scheme)
        group.frames.append(frame)
        group.frame_owners.append(ticket)
        self._gather(len(frame))

    async def finish(self) -> None:
        """Write what is gathered, and end the thread."""
        if self._timer is not None:
            self._timer.cancel()
        self._begin()
        while self._writing or self._groups:
            await asyncio.sleep(0.01)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._log.close)
        self._thread.shutdown()

    async def ended(self) -> None:
        """Returns when the writing has ended for good."""
        await self._ended.wait()

    def _group(self, survey: str, period: int, answered: tuple[str, ...], scheme: Scheme) -> _Group:
        key = survey, period, answered
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(scheme, period)
        return group

    def _gather(self, rows: int) -> None:
        self.waiting += rows
        self._gathered += rows
        if self._writing:
            return
        assert self._loop is not None, "not started"
        if self._gathered >= ROWS_AT_ONCE:
            self._begin()
        elif not self._due:
            self._due = True
            self._loop.call_later(GATHER_SECONDS, self._begin)

    def _begin(self) -> None:
        self._due = False
        if self._writing or not self._groups or self._loop is None:
            return
        groups, self._groups, self._gathered = list(self._groups.values()), {}, 0
        self._writing = True
        began = time.perf_counter()
        job = self._thread.submit(self._write, groups)
        loop = self._loop
        job.add_done_callback(lambda done: loop.call_soon_threadsafe(self._settle, groups, began, done))

    def _write(self, groups: list[_Group]) -> list[_Written]:
        """In the thread. What was refused for its rows is refused whether or not the others could be written."""
        cuts = [cut_rows(group.rows, group.frames, group.scheme, self._log.partitions) for group in groups]
        frames: list[tuple[int, bytes]] = []
        held: list[bool] = []
        for group, cut in zip(groups, cuts, strict=True):
            holds = self._holder is not None and self._holder.holds(group.scheme, group.period, self._now())
            held.append(holds)
            if not holds:
                frames += cut.encoded(group.scheme)
        outcome = Outcome.TAKEN
        try:
            if frames:
                self._log.write(frames)
        except DeliveryError as error:
            log.warning("reports were not confirmed; their senders will send them again", error=error.message)
            outcome = Outcome.FAILED
        self.delivering = outcome is not Outcome.FAILED
        if self._holder is not None:
            kept = [(group.scheme, cut) for group, cut, holds in zip(groups, cuts, held, strict=True) if holds]
            self._holder.keep(kept)
        outcomes = [Outcome.HELD if holds else outcome for holds in held]
        return [_Written(*each) for each in zip(groups, cuts, outcomes, strict=True)]

    def _settle(self, groups: list[_Group], began: float, done: Future[list[_Written]]) -> None:
        """In the event loop: answer everybody whose reports were written, or were not."""
        self._writing = False
        error = done.exception()
        if error is not None:
            self._fail(error)
            for group in groups:
                for ticket, place in self._owners(group):
                    ticket.settle(place, Outcome.FAILED)
            return
        self._metrics.write_seconds.observe(time.perf_counter() - began)
        for written in done.result():
            self._settle_group(written)
        self._begin()

    def _settle_group(self, written: _Written) -> None:
        group, cut = written.group, written.cut
        survey, outcome = group.scheme.survey, written.outcome
        if outcome is Outcome.TAKEN and self._may_be_closed(survey, group.period):
            outcome = Outcome.FAILED
        owners = self._owners(group)
        if not cut.faults.any():
            for ticket, place in owners:
                ticket.settle(place, outcome)
            self._metrics.note(group.scheme, outcome.value, len(owners))
            return
        for row, (ticket, place) in enumerate(owners):
            reason = cut.reason(row)
            ticket.settle(place, outcome if reason is None else row_reject(reason, survey.id))
            self._metrics.note(group.scheme, outcome.value if reason is None else reason.value)

    def _may_be_closed(self, survey: Survey, period: int) -> bool:
        """Whether a period may have been closed before its reports were written: then they may not be counted."""
        return survey.clock == "wall" and datetime.fromtimestamp(self._now(), UTC) >= closing_time(survey, period)

    def _owners(self, group: _Group) -> list[tuple[Ticket, int]]:
        owners = group.owners
        for frame, ticket in zip(group.frames, group.frame_owners, strict=True):
            owners = owners + [(ticket, place) for place in range(len(frame))]
        self.waiting -= len(owners)
        return owners

    def _tend(self) -> None:
        if self.failed is not None or self._loop is None:
            return
        if self._tending is None or self._tending.done():
            self._tending = self._thread.submit(self._tend_log)
            loop = self._loop
            self._tending.add_done_callback(lambda done: loop.call_soon_threadsafe(self._tended, done))
        self._timer = self._loop.call_later(TEND_SECONDS, self._tend)

    def _tend_log(self) -> None:
        self._log.tend()
        if self._holder is not None:
            try:
                self._holder.release(self._log, self._lookup, self._now())
            except DeliveryError as error:
                log.warning("held reports were not delivered; they stay in the gateway's log", error=error.message)

    def _tended(self, done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        log.error("writing has ended", kind=type(error).__name__, exc_info=error)
        self.failed = self.failed or error
        self._ended.set()
