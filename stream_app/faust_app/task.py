"""One partition of a topic: its pure log reader, and what the reader wants written, one flush at a time.

How often a partition is flushed: what others wait for soon, and everything else when it is worth the cost.

A log that is not the one that the state contains, or that lacks records, is not read on: its task has a fault, until
`hearsay recover`. Offsets of tasks are those of the log; offsets of readers are those of the state (see `Mark`).
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Generic, TypeVar

import structlog
from faust.types import TP

from protocols.errors import HearsayError
from stream_app.faust_app.broker import READ_MORE, StateTable
from stream_app.faust_app.crash import fatal
from stream_app.faust_app.monitoring import FLUSH_SECONDS, Outcomes, note_outcomes
from stream_app.faust_app.overrides.batches import SkippedRecords
from stream_app.faust_app.writing import NO_SURVEY, Writer
from stream_app.log.codec import RECORD_BYTES, RECORD_COST
from stream_app.log.log_reader import LogReader
from stream_app.log.marks import LogFault, Skipped
from stream_app.log.recovery import Errors

FLUSH_EVERY_SECONDS = 1.0
"""How long what others wait for may wait to be written: messages, results, and a good number of reports."""
WORTH_BYTES = 128 * RECORD_COST
"""How much must have been read to be worth a flush of its own, if nobody waits for it ..."""
QUIET_SECONDS = 5.0
"""... and how long less than that may wait. Until then it is counted in memory, and in the log."""
FLUSH_BYTES = RECORD_BYTES // 4
"""Write as soon as this much was read ..."""
PAUSE_BYTES = RECORD_BYTES // 2
"""... and pause reading if this much waits for an earlier flush. Tokens are part of it, so they fit in a record."""
PROVISIONAL_SECONDS = 1.0
"""How long to wait at least between results that are not final ..."""
PROVISIONAL_SHARE = 0.05
"""... and which share of the time making them may take."""


class Pace:
    """The pace of one partition. `now` gives seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._unwritten = 0
        self._flushed_at = now()
        self._provisional_due = now()

    def note_read(self, size: int) -> None:
        """Records were read: their bytes, and `RECORD_COST` for each."""
        self._unwritten += size

    @property
    def is_full(self) -> bool:
        """Whether to flush at once."""
        return self._unwritten >= FLUSH_BYTES

    @property
    def is_too_full(self) -> bool:
        """Whether to read nothing more before the next flush."""
        return self._unwritten >= PAUSE_BYTES

    def is_due(self, pressing: bool) -> bool:
        """Whether to flush, asked every second; `pressing` if others wait for what is to be written."""
        return pressing or self._unwritten >= WORTH_BYTES or self._now() - self._flushed_at >= QUIET_SECONDS

    @property
    def is_provisional(self) -> bool:
        """Whether the next flush has results that are not final."""
        return self._now() >= self._provisional_due

    def flushed(self, provisional: bool, seconds: float) -> None:
        """A flush was made, which took so long."""
        self._unwritten = 0
        self._flushed_at = self._now()
        if provisional:
            self._provisional_due = self._now() + max(PROVISIONAL_SECONDS, seconds / PROVISIONAL_SHARE)


SURVEY_HINT = "its records are passed over; read in docs/runbooks/HearsaySurveyQuarantined.md what to do"
POSITION_HINT = "read in docs/runbooks/HearsayPositionRefused.md what to do"

log = structlog.get_logger(__name__)

R = TypeVar("R", bound=LogReader)


class PartitionTask(Generic[R]):
    """One partition: its log reader, and an asyncio task that writes its flushes one after the other.

    `failed` is called with what went wrong with surveys, and must close the task: its reader is of no use any more.
    """

    def __init__(
        self,
        tp: TP,
        reader: R,
        table: StateTable,
        writer: Writer,
        failed: "Callable[[PartitionTask[R], Errors], None]",
        fault: LogFault | None = None,
    ) -> None:
        self.tp = tp
        self.reader = reader
        self._log = log.bind(topic=tp.topic, partition=tp.partition)
        self.fault: LogFault | None = None
        if fault is not None:
            self.halt(fault)
        self.written_through = reader.next_offset - 1
        self._table = table
        self._writer = writer
        self._failed = failed
        self.has_gap = False  # a record came that is not the next one
        self.last_wanted = -1  # the next offset, when it was last looked at
        self.attempts = 0  # how often records were fetched again from there
        self.is_position_refused = False  # a broker takes it for too large
        self.outcomes: Outcomes = Counter()  # what became of reports that are not written yet
        self.is_private = False  # among them are reports of a survey with presence_epsilon
        self._pace = Pace()
        self._finishing = False
        self._closed = False
        self._flush_wanted = asyncio.Event()
        self._flush_begun = asyncio.Event()
        self._say_failures()
        # A reader of another log than its state contains has nothing to write.
        self._writing = asyncio.create_task(self._keep_writing() if fault is None else asyncio.sleep(0))

    @property
    def next_offset(self) -> int:
        """The offset of the log to read on from."""
        return self.reader.next_offset - self.reader.mark.shift

    @property
    def acknowledged(self) -> int:
        """The offset of the log up to which everything is written."""
        return self.written_through + 1 - self.reader.mark.shift

    def halt(self, fault: LogFault) -> None:
        """Read nothing more: an operator must decide. What was read before is still written."""
        if self.fault is None:
            kind = fault.kind.value
            self._log.error("this partition is not read on", fault=kind, what=fault.what, hint=READ_MORE)
        self.fault = fault

    def skipped(self, record: SkippedRecords) -> Skipped:
        """Skipped offsets in offsets of the state."""
        shift = self.reader.mark.shift
        return Skipped(record.offset + shift, record.last + shift, record.why, record.leader_epoch)

    async def note_read(self, size: int, write_now: bool) -> None:
        """Note that the reader was given records of this size; wait if writing is too far behind."""
        self._pace.note_read(size)
        if write_now or self._pace.is_full:
            self._flush_wanted.set()
        if self._pace.is_too_full and not self._closed:
            self._flush_begun.clear()
            await self._flush_begun.wait()

    def _say_failures(self) -> None:
        """Say which surveys are quarantined from now on."""
        for survey, error in self.reader.failed.items():
            quarantine = self.reader.quarantines[survey]
            self._log.error(
                "a survey is quarantined",
                survey=survey,
                why=quarantine.why,
                after_offset=quarantine.offset,
                hint=SURVEY_HINT,
                exc_info=None if isinstance(error, HearsayError) else error,
            )

    async def finish(self) -> None:
        """Write the last flush."""
        self._finishing = True
        self._flush_wanted.set()
        await self._writing

    def close(self) -> None:
        """Stop writing: another worker may own the partition by now."""
        self._closed = True
        self._writing.cancel()
        self._flush_begun.set()

    async def _keep_writing(self) -> None:
        with fatal(f"writing the state of {self.tp.topic} {self.tp.partition}"):
            try:
                while not self._finishing:
                    await self._write_next()
                    await self._until_due()
                await self._write_next()
            except Exception:
                if not self.reader.failing:
                    raise
                self._failed(self, self.reader.failing)

    async def _until_due(self) -> None:
        """Wait until there is something to write that is wanted, or worth it.

        All partitions of a worker ask at the same time, so that what they write shares its requests.
        """
        while not self._flush_wanted.is_set():
            now = asyncio.get_running_loop().time()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._flush_wanted.wait(), FLUSH_EVERY_SECONDS - now % FLUSH_EVERY_SECONDS)
            if self._pace.is_due(self.reader.is_pressing):
                break
        self._flush_wanted.clear()

    async def _write_next(self) -> None:
        provisional = self._finishing or self._pace.is_provisional
        began = time.perf_counter()
        flush = self.reader.flush(provisional, self._finishing)
        self._pace.flushed(provisional, time.perf_counter() - began)
        outcomes, self.outcomes = self.outcomes, Counter()
        private, self.is_private = self.is_private, False
        self._flush_begun.set()
        if flush:
            # How often the reports of a private survey were flushed would nearly count them.
            with nullcontext() if private else FLUSH_SECONDS.labels(self._table.name).time():
                refused = await self._writer.write(flush, self._table.changelog)
            refusal = refused.pop(NO_SURVEY, None)
            if refused:
                self._failed(self, refused)
                return
            self._say_position(refusal)
            if refusal is not None:
                self.reader.position_refused(flush)
                self.outcomes += outcomes
                return
        self.written_through = flush.offset
        note_outcomes(outcomes)

    def _say_position(self, refusal: Exception | None) -> None:
        """Say when a position is refused for the first time, and when one is written again."""
        if refusal is not None and not self.is_position_refused:
            self._log.error(
                "the position is refused, and everything else goes on",
                why=str(refusal),
                written_through=self.acknowledged - 1,
                hint=POSITION_HINT,
            )
        if refusal is None and self.is_position_refused:
            self._log.info("the position is written again")
        self.is_position_refused = refusal is not None
