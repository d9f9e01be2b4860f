"""Counting one partition of the reports topic: pure, exact and idempotent (re-applying a record changes nothing).

Whatever a record changes belongs to one of two things. An open period has its counts, its tokens and the rows it
refused, through the last offset that changed it. The position has the rest (clocks, refused records, messages) through
its own offset. Each skips the offsets it contains already, so the log may be read again from any earlier offset.

Of a survey that was quarantined, the position has the rest through an offset of its own, until it has caught up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from protocols.scheme import Scheme
from protocols.wire import Clock, Frame, Lookup, Reason, Reject, ReportRow, time_fault
from stream_app.counting.judging import (
    Decoded,
    DecodedRecord,
    Judged,
    Record,
    batches,
    decode,
    joined,
    judge_rows,
    refused_record,
    refused_rows,
    refused_skip,
)
from stream_app.counting.open_periods import OpenPeriods, Saving
from stream_app.counting.partials import Progress, message
from stream_app.counting.state import Listed, OpenPeriod, Period, Position, Rejects, known_scheme, recover
from stream_app.log.codec import VALUE_BYTES, of_this_release
from stream_app.log.flushes import Flush, Output, Write
from stream_app.log.log_reader import LogReader
from stream_app.log.marks import Loss, Skipped, Why
from stream_app.log.recovery import NONE_FAIL, Errors, Records

DEFAULT_SAVING = Saving()
UNKNOWN = ""  # the survey of a record that could not be read


@dataclass(frozen=True)
class Changes:
    """What some records of a survey did: rows counted, rows refused by reason, or how far the survey was closed."""

    survey: str = UNKNOWN
    counted: int = 0
    refused: Mapping[Reason, int] = field(default_factory=dict)
    closed_through: int | None = None


class PartitionCounter(LogReader):
    """The counter of one input partition. Feed it every record in order, flush now and then.

    `records` are the state records that earlier flushes left in the store, stale ones included; the log begins at
    `log_start`. Read on at `next_offset`; `missing` is what the log no longer has, perhaps reports of these `surveys`.
    `check_tokens=False` counts repeats too: for senders that are known never to repeat. No record of a survey that is
    written has more than `limit` bytes; `saving` says when a counter is written. Surveys that are `failing` are
    quarantined.
    """

    STATE = "count"
    POSITION = Position
    _position: Position
    PLAIN = (
        "the reports topic must be plain: no compaction, and retained for longer than a period stays open; `hearsay "
        "recover` lets workers go on"
    )
    NOTHING_LACKS = frozenset({Why.MARKER, Why.TOO_LARGE, Why.UNDECODABLE})  # the latter two are refused, and kept so

    def __init__(
        self,
        partition: int,
        partitions: int,
        lookup: Lookup,
        clock_key: bytes,
        records: Records = (),
        log_start: int = 0,
        check_tokens: bool = True,
        surveys: Iterable[str] = (),
        limit: int = VALUE_BYTES,
        saving: Saving = DEFAULT_SAVING,
        failing: Errors = NONE_FAIL,
    ) -> None:
        with of_this_release(f"the state of partition {partition} of the reports"):
            state, periods, start, missing = recover(partition, records, lookup, log_start, surveys, failing)
        super().__init__(partition, state, start, missing)
        self._partitions = partitions
        self._lookup = lookup
        self._clock_key = clock_key
        self._periods = OpenPeriods(partition, periods, check_tokens, limit, saving)
        position = self._position
        # What the position contains of surveys that are read again because they were quarantined.
        self._behind = {
            survey: quarantine.offset
            for survey, quarantine in position.quarantines.items()
            if quarantine.offset is not None
        }
        quarantined = filter(position.is_quarantined, position.quarantines)
        self._unsent = {*self.rejects, *position.lost, *position.losing} - {UNKNOWN, *quarantined}
        """Surveys whose rejects or losses the merge may lack."""
        self.pending_bytes = 0
        """About how much the next flush will write beyond the counters: used to decide when to flush."""

    @property
    def open_periods(self) -> Mapping[Period, OpenPeriod]:
        return self._periods.all

    @property
    def is_pressing(self) -> bool:
        return super().is_pressing or bool(self._unsent)

    @property
    def rejects(self) -> Rejects:
        """Rows refused since the beginning, by survey ("" where it could not be read) and reason."""
        names = {*self._position.rejects, *self._periods.surveys()}
        return {survey: self._rejects_of(survey) for survey in sorted(names)}

    @property
    def lost(self) -> dict[str, tuple[Loss, ...]]:
        """Reports that are lost at most, by survey, for periods that windows can still include."""
        return self._position.losses(self._lookup)

    def closed_through(self, survey: str) -> int:
        return self._position.clock(survey).through

    def apply(self, record: Record | Skipped) -> Changes:
        """Count one record. One that was applied before changes nothing; a missing one is an error."""
        changes = self.apply_all([record])
        return changes[0] if changes else Changes()

    def apply_all(self, records: Sequence[Record | Skipped], certain: bool = True) -> list[Changes]:
        """Count records with the same result as one by one, but much faster; several may share one `Changes`.

        Offsets that were skipped stand among them, in sequence: what their batch may have held is refused.

        It stops before a gap in the offsets, and before a record of an unknown survey unless it is `certain` that every
        survey is known that was published before these records were written: apply the rest from `next_offset` on. A
        gap before the first record to apply is an error.
        """
        decoded_records: list[DecodedRecord] = []
        for record in records:
            first = record.first if isinstance(record, Skipped) else record.offset
            if decoded_records and first > self.next_offset:
                break
            if isinstance(record, Skipped):
                if (left := self.skip(record)) is not None and (refused := refused_skip(left)) is not None:
                    decoded_records.append(refused)
                continue
            if not self._is_next(record.offset):
                continue
            decoded = decode(record, self._lookup, self._clock_key)
            if not certain and isinstance(decoded, Reject) and decoded.reason is Reason.UNKNOWN_SURVEY:
                break
            decoded_records.append((record, decoded))
            self._periods.note_read(len(record.value or b""))
            self._advance_to(record.offset, record.epoch)
        in_batches = batches(
            decoded_records, self._contained, lambda one: one.period <= self.closed_through(one.survey)
        )
        return [changes for batch in in_batches for changes in self._apply(batch)]

    def flush(self, provisional: bool = True, everything: bool = False) -> Flush:
        """What is to be written now; with `provisional`, what open periods have counted so far as well.

        Counters may wait for later flushes, unless `everything` is wanted: then recovery has nothing to read again.
        """
        tokens: list[Write] = []
        counters: list[Write] = []
        shown: list[Output] = []
        provisional = provisional and self._read >= self._contained  # what is read again was sent before
        for survey in sorted({*self._periods.surveys(), *self._unsent}):
            with self._caring_for(survey):
                seen, counted = self._periods.writes(survey, everything)
                shown += self._shown(survey, everything) if provisional else []
                tokens += seen
                counters += counted
        self.pending_bytes = 0
        self._update_position()
        return self._flush(tokens, counters, (), shown)

    def _shown(self, survey: str, everything: bool) -> list[Output]:
        """What the merge lacks of a survey that is not closed."""
        parts = self._periods.unsent(survey, everything)
        return [*parts, self._progress(survey, self._read)] if survey in self._unsent else parts

    def _progress(self, survey: str, offset: int) -> Output:
        """What the merge must know of a survey besides its counts, as a message."""
        self._unsent.discard(survey)
        rejects, lates = dict(self._rejects_of(survey)), dict(self._position.lates.get(survey, {}))
        lost = self._position.lost_of(survey, known_scheme(self._lookup, survey).ahead)
        return message(Progress(survey, self.partition, offset, self.closed_through(survey), rejects, lates, lost))

    def _rejects_of(self, survey: str) -> Counter[str]:
        return self._position.rejects.get(survey, Counter[str]()) + self._periods.rejects(survey)

    def _update_position(self) -> None:
        """List through which offset the counter of each open period must be."""
        position, read = self._position, self._read
        before = position.open
        position.open = {key: listed for key, listed in before.items() if position.is_quarantined(key[0])}
        for key, period in self._periods.all.items():
            now = Listed(period.offset, period.opened, period.rows)
            listed = before.get(key, now)
            position.open[key] = now if now.due >= listed.due else Listed(listed.due, period.opened, listed.rows)
        for survey, contained in self._behind.items():
            if not position.is_quarantined(survey):
                own = None if read >= self._contained else max(contained, read)
                position.quarantines[survey] = replace(position.quarantines[survey], offset=own)

    def _apply(self, batch: Sequence[DecodedRecord]) -> list[Changes]:
        survey = batch[0][1].survey or UNKNOWN
        if not self._position.is_quarantined(survey):
            with self._caring_for(survey):
                together = self._count_together(batch) if len(batch) > 1 else None
                return [together] if together else [self._apply_one(record, decoded) for record, decoded in batch]
        self.passed_over[survey] += len(batch)
        return []

    def _apply_one(self, record: Record, decoded: Decoded) -> Changes:
        if isinstance(decoded, Frame | ReportRow):
            return self._apply_frame(record, joined([decoded], known_scheme(self._lookup, decoded.survey)))
        if self._contains(record.offset, decoded.survey or UNKNOWN):
            return Changes()
        if isinstance(decoded, Clock):
            return self._apply_clock(record.offset, decoded)
        return self._refuse(record, decoded)

    def _contains(self, offset: int, survey: str) -> bool:
        """Whether what a record of a survey did to the position is in it."""
        return offset <= self._behind.get(survey, self._contained)

    def _count_together(self, batch: Sequence[DecodedRecord]) -> Changes | None:
        """Count frames as one; None if one of them may need treatment of its own, and nothing was counted."""
        (first, _), (last, _) = batch[0], batch[-1]
        counted = [decoded for _, decoded in batch if isinstance(decoded, Frame | ReportRow)]
        scheme = known_scheme(self._lookup, counted[0].survey)
        frame = joined(counted, scheme)
        through = self.closed_through(frame.survey)
        if time_fault(frame.survey, frame.period, len(frame), through, scheme.ahead):
            return None
        judged = judge_rows(frame, scheme, self.partition, self._partitions)
        period = self._periods.open((frame.survey, frame.period), scheme, first.offset)
        if judged.bad or first.offset <= period.offset:
            return None
        return self._count(last.offset, period, judged, sum(len(record.value or b"") for record, _ in batch))

    def _apply_frame(self, record: Record, frame: Frame) -> Changes:
        scheme = known_scheme(self._lookup, frame.survey)
        contained = self._contains(record.offset, frame.survey)
        through = self.closed_through(frame.survey)
        if frame.period <= through:
            self._note_late(record, frame, scheme)
        if contained:  # it is read again: it counts if it was accepted for a period that is still open
            still_open = self._periods.get((frame.survey, frame.period))
            if still_open is None or record.offset < still_open.opened:
                return Changes()
        elif reject := time_fault(frame.survey, frame.period, len(frame), through, scheme.ahead):
            if reject.reason is Reason.LATE and frame.period > through - scheme.visits.reach:
                self._position.lates.setdefault(frame.survey, Counter())[frame.period] += len(frame)
            return self._refuse(record, reject)
        judged = judge_rows(frame, scheme, self.partition, self._partitions)
        if judged.bad and not contained:
            self._send(refused_rows(judged, scheme, record.offset, self.partition))
        period = self._periods.open((frame.survey, frame.period), scheme, record.offset)
        if record.offset <= period.offset:
            return Changes()
        changes = self._count(record.offset, period, judged, len(record.value or b""))
        return Changes() if contained else changes  # what is counted again is no news

    def _note_late(self, record: Record, frame: Frame, scheme: Scheme) -> None:
        """Add late rows to the next period to close: its final takes them into account.

        Nothing changes if the clock has moved since (when the log is read again), or if that period contains this
        offset.
        """
        clock, offset = self._position.clock(frame.survey), record.offset
        if offset < clock.offset or frame.period <= clock.through - scheme.visits.reach:
            return
        period = self._periods.open((frame.survey, clock.through + 1), scheme, offset)
        if offset > period.offset:
            period.late[frame.period] += len(frame)
            self._periods.change(period, offset, len(record.value or b""))

    def _count(self, offset: int, period: OpenPeriod, judged: Judged, size: int) -> Changes:
        counted, refused = self._periods.count(offset, period, judged, size)
        self.pending_bytes += counted * judged.good.tokens.itemsize
        if refused:
            self._unsent.add(judged.good.survey)
        return Changes(judged.good.survey, counted, refused)

    def _apply_clock(self, offset: int, clock: Clock) -> Changes:
        """Close what a clock record closes. Each one is acknowledged by progress, also a repeat or an empty one."""
        survey = clock.survey
        moved = self._position.close(known_scheme(self._lookup, survey).survey, offset, clock.through)
        through = self.closed_through(survey)
        for key, period in self._periods.close(survey, through):
            period.offset = offset
            self._send([self._periods.part(key, period, closed=True)])
            self._position.rejects.setdefault(survey, Counter()).update(period.rejects)
            self._position.open.pop(key, None)
            self._deletions += [Write(gone, None) for gone in self._periods.records_of(key, period)]
        self._send([self._progress(survey, offset)])
        return Changes(survey, closed_through=through if moved else None)

    def _refuse(self, record: Record, reject: Reject) -> Changes:
        survey = reject.survey or UNKNOWN
        self._position.rejects.setdefault(survey, Counter())[reject.reason.value] += reject.rows
        if survey != UNKNOWN:
            self._unsent.add(survey)
        self._send([refused_record(record, reject, self.partition)])
        return Changes(survey, refused={reject.reason: reject.rows})

    def _send(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            self._outputs.append(output)
            self.pending_bytes += len(output.value)
