"""Gathering reports for a few milliseconds, and writing them together: an answer waits until they are durable.

While a batch is written the next one is gathered, so a batch grows with what comes in. What waits is bounded; beyond
that nothing is taken.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from gateway.door.gathering import Cut, cut_rows
from gateway.door.judging import Times, closing_time
from gateway.service.answers import Outcome, Result, Ticket, row_reject
from gateway.service.holding import Holder
from gateway.service.metrics import Metrics
from protocols.errors import DeliveryError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import Frame, Lookup, ReportRow

GATHER_SECONDS = 0.004
MOST_WAITING = 200_000
"""Reports that are gathered or being written; a report takes about half a kilobyte while it waits."""
ROWS_AT_ONCE = 20_000
TEND_SECONDS = 1.0
log = structlog.get_logger(__name__)


class Log(Protocol):
    """Where frames are written."""

    @property
    def partitions(self) -> int: ...
    @property
    def times(self) -> Times: ...

    async def write(self, frames: list[tuple[int, bytes]]) -> None:
        """Write frames, each to its partition; they are durable on return. Raises DeliveryError if they may not be.

        It may be called again before it returns: held reports are written beside new ones.
        """
        ...

    async def tend(self) -> None:
        """What is to be done from time to time, whether or not there is something to write."""
        ...

    async def close(self) -> None: ...


@dataclass
class _Group:
    """Reports that fit in one frame: of one survey and period, with the same attributes answered.

    Where reports are held, those of an `edge` are apart: however many they are, they are of one credential.
    """

    scheme: Scheme
    period: int
    edge: bytes
    parts: list[tuple[ReportRow | Frame, Ticket, int, int]] = field(default_factory=list)
    """Rows and frames: each with its ticket, the place in it, and how many reports it has."""


class Writer:
    """Takes judged reports, writes them, and settles their tickets; all in the event loop. It tends the log."""

    def __init__(
        self, log: Log, lookup: Lookup, now: Callable[[], float] = time.time, holder: Holder | None = None
    ) -> None:
        self.waiting = 0
        self.shown_waiting = 0  # without those of surveys with presence_epsilon: for metrics
        self.failed: Exception | None = None
        """What ended the writing for good; the process must end."""
        self.ended = asyncio.Event()
        self.log = log
        self._lookup = lookup
        self.metrics = Metrics()
        self.now = now
        self.holder = holder
        self._holding = asyncio.Lock()
        self._groups: dict[tuple[str, int, tuple[str, ...], bytes], _Group] = {}
        self._gathered = 0
        self._due = False
        self._confirmed = True  # what was last written
        self._writing: asyncio.Task[None] | None = None
        self._tending = asyncio.create_task(self._tend())

    def has_room(self, reports: int) -> bool:
        return self.failed is None and self.waiting + reports <= MOST_WAITING

    def add(self, report: ReportRow | Frame, scheme: Scheme, ticket: Ticket, place: int = 0, edge: bytes = b"") -> None:
        """Gather a report, or a frame of them; their results are those of the ticket from a place on.

        `edge`: the token of the edge that has sent it, if it is to be held.
        """
        answered = tuple(report.answers) if isinstance(report, Frame) else report.answered
        key = report.header.survey, report.header.period, answered, edge
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(scheme, report.header.period, edge)
        rows = len(report) if isinstance(report, Frame) else 1
        group.parts.append((report, ticket, place, rows))
        self._wait(group, rows)
        self._gathered += rows
        if self._gathered >= ROWS_AT_ONCE:
            self._begin()
        elif not self._due:
            self._due = True
            asyncio.get_running_loop().call_later(GATHER_SECONDS, self._begin)

    async def finish(self) -> None:
        """Write what is gathered, and close the log."""
        self._tending.cancel()
        await asyncio.wait([self._tending])
        while self._writing or self._groups:
            self._begin()
            if self._writing is not None:
                await asyncio.wait([self._writing])
        await self.log.close()

    def _wait(self, group: _Group, rows: int) -> None:
        self.waiting += rows
        if group.scheme.presence is None:
            self.shown_waiting += rows

    def _begin(self) -> None:
        """Write what is gathered, unless something is being written: then it is next."""
        self._due = False
        if self._writing is None and self._groups:
            groups, self._groups, self._gathered = list(self._groups.values()), {}, 0
            self._writing = asyncio.create_task(self._write(groups))
            self._writing.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._writing = None
        if not self._due:
            self._begin()

    async def _write(self, groups: list[_Group]) -> None:
        began = time.perf_counter()
        try:
            written = await self._written(groups)
        except Exception as error:
            self._fail(error)
            for group in groups:
                self._settle(group, [Outcome.FAILED] * sum(size for *_, size in group.parts))
        else:
            if all(group.scheme.presence is None for group in groups):  # their number would count reports
                self.metrics.write_seconds.observe(time.perf_counter() - began)
            for group, cut, outcome in written:
                self._answer(group, cut, outcome)

    async def _written(self, groups: list[_Group]) -> list[tuple[_Group, Cut, Outcome]]:
        """What was refused for its rows is refused whether or not the others could be written."""
        cuts = [cut_rows([part[0] for part in group.parts], group.scheme, self.log.partitions) for group in groups]
        frames: list[tuple[int, bytes]] = []
        kept: list[tuple[Scheme, Cut, bytes]] = []
        outcomes = []
        for group, cut in zip(groups, cuts, strict=True):
            if self.holder is not None and self.holder.holds(group.scheme, group.period, self.now()):
                kept.append((group.scheme, cut, group.edge))
                outcomes.append(Outcome.HELD)
            else:
                frames += cut.encoded(group.scheme)
                outcomes.append(Outcome.TAKEN)
        if self.holder is not None and kept:
            async with self._holding:
                await asyncio.to_thread(self.holder.keep, kept)
        if frames:
            try:
                await self.log.write(frames)
            except DeliveryError as error:
                # One line for an outage where each would count reports.
                if self._confirmed or any(group.scheme.presence is None for group in groups):
                    log.warning("reports were not confirmed; their senders will send them again", error=error.message)
                self._confirmed = False
                outcomes = [Outcome.FAILED if outcome is Outcome.TAKEN else outcome for outcome in outcomes]
            else:
                self._confirmed = True
        return list(zip(groups, cuts, outcomes, strict=True))

    def _answer(self, group: _Group, cut: Cut, outcome: Outcome) -> None:
        """Answer everybody whose reports were written, or were not."""
        survey, refused = group.scheme.survey, cut.refused
        if outcome is Outcome.TAKEN and self._may_be_closed(survey, group.period):
            outcome = Outcome.FAILED
        results: list[Result] = [outcome] * len(cut.faults)
        for row, reason in refused.items():
            results[row] = row_reject(reason, survey.id)
            self.metrics.note(group.scheme, reason.value)
        if len(refused) < len(results):
            self.metrics.note(group.scheme, outcome.value, len(results) - len(refused))
        self._settle(group, results)

    def _settle(self, group: _Group, results: Sequence[Result]) -> None:
        """Give everybody the results of their reports, which are those of all rows, then those of all frames."""
        self._wait(group, -len(results))
        begin = 0
        for _, ticket, place, size in sorted(group.parts, key=lambda part: isinstance(part[0], Frame)):
            ticket.settle(place, results[begin : begin + size])
            begin += size

    def _may_be_closed(self, survey: Survey, period: int) -> bool:
        """Whether a period may have been closed before its reports were written: then they may not be counted."""
        if survey.clock != "wall":
            return False
        return self.log.times.moment(survey, self.now()) >= closing_time(survey, period).timestamp()

    async def _tend(self) -> None:
        try:
            while True:
                await self.log.tend()
                if self.holder is not None:
                    await self._release(self.holder)
                await asyncio.sleep(TEND_SECONDS)
        except Exception as error:
            self._fail(error)

    async def _release(self, holder: Holder) -> None:
        """Write what is ripe to the log, and forget it there."""
        async with self._holding:
            ripe = await asyncio.to_thread(holder.ripe, self._lookup, self.now())
        for place, frames in ripe:
            try:
                await self.log.write(frames)
            except DeliveryError as error:
                log.warning("held reports were not delivered; they stay held", error=error.message)
                return
            async with self._holding:
                await asyncio.to_thread(holder.forget, place)

    def _fail(self, error: Exception) -> None:
        log.error("writing has ended", kind=type(error).__name__, exc_info=error)
        self.failed = self.failed or error
        self.ended.set()
