"""Adding up the counts of all partitions: what is open of a survey, and one final when all have closed a period.

A part with a higher offset replaces one with a lower offset; an equal offset never does; the first closed part of a
partition and period is never replaced. A final is made when every partition has closed the period, and is written to
the state before it is published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.wire import Lookup
from stream_app.counting.clocks import NEVER
from stream_app.counting.counters import Counts, add_counts
from stream_app.counting.partials import Part, Partial, Progress, decode_partial
from stream_app.counting.recovery import Records, known_scheme
from stream_app.counting.state import NOTHING, Period
from stream_app.finals import Final, NotCounted, Status
from stream_app.finals.final import message
from stream_app.finals.reducing import open_reports, reduced
from stream_app.log.codec import RECORD_BYTES, VALUE_BYTES, of_this_release
from stream_app.log.flushes import FINALS, OPEN, Flush, Output, Write
from stream_app.log.log_reader import LogReader
from stream_app.log.losses import since
from stream_app.log.marks import NO_EPOCH, Skipped
from stream_app.log.quarantines import check_size
from stream_app.merging.frozen import FrozenFinals
from stream_app.merging.parts import HeldPart, HeldParts
from stream_app.merging.recovery import recover_merge
from stream_app.merging.state import MergePosition, SurveyStatus, merged_key, part_key, survey_key

OPEN_AT_ONCE = 32
"""Of how many surveys a flush has what is open: nothing else happens while it is made."""
PLAIN = "only workers may write to the partials topic, and it must not be compacted"


class Merger(LogReader):
    """Merges one partition of the partials topic: apply every partial in order, flush from time to time.

    `records` and `log_start` as for PartitionCounter. `keyring` derives the noise on presence. No final has more than
    `limit` bytes.
    """

    def __init__(
        self,
        owner: int,
        partitions: int,
        lookup: Lookup,
        keyring: Keyring,
        records: Records = (),
        log_start: int = 0,
        limit: int = VALUE_BYTES,
    ) -> None:
        with of_this_release(f"the merge state of partition {owner} of the partials"):
            recovered = recover_merge(owner, records, log_start)
        position, stale = recovered.position, recovered.stale
        super().__init__(recovered.start, position, stale, recovered.missing)
        self.failed += recovered.failed
        self.owner = owner
        self._partitions = partitions
        self._lookup = lookup
        self._saved = dict(position.surveys)  # the offset that the record of each survey contains
        self._statuses: dict[str, SurveyStatus] = {}
        self._parts = HeldParts()
        self._finals = FrozenFinals(owner, keyring, limit)
        for survey, state in recovered.surveys.items():
            self._statuses[survey] = state.status
            self._finals.add(survey, state.finals)
            for key, part in state.parts.items():
                self._parts.put(key, part)
        self._published = self._published_through()  # as of the last flush
        # Surveys whose status may be out of date, the one that waits longest first; those of which a period has not
        # been published yet; and those whose record is out of date.
        self._changed = dict.fromkeys(self._statuses)
        self._first: dict[str, None] = {}
        # The last status of each survey. A repetition would show that there is a report, where a minimum hides it.
        self._told: dict[str, Status] = {}
        self._unsaved = {survey for survey, state in recovered.surveys.items() if state.changed}

    @property
    def is_pressing(self) -> bool:
        return super().is_pressing or bool(self._unsaved or self._changed)

    @property
    def has_first(self) -> bool:
        return bool(self._first)

    @property
    def statuses(self) -> Mapping[str, SurveyStatus]:
        """The status of each survey. The wall clock repeats a clock record until every partition confirms it here."""
        return self._statuses

    def apply(self, offset: int, value: bytes, epoch: int = NO_EPOCH, key: bytes = b"") -> list[Period]:
        """Merge one partial and return the periods it made final. Idempotent: re-applying a partial changes nothing.

        `key` is the survey, in case that the partial cannot be read.
        """
        if not self._is_next(offset, "the partials go", PLAIN):
            return []
        self._advance_to(offset, epoch)
        survey = key.decode("utf-8", "replace")
        with self._caring_for(survey):
            partial = decode_partial(value)
            survey = partial.survey
        if not self._is_quarantined(survey):
            with self._caring_for(survey):
                return self._merge(offset, partial)
        self._saved[survey] = max(offset, self._saved.get(survey, NOTHING))  # it is read again once the survey goes on
        self.passed_over[survey] += 1
        return []

    def _merge(self, offset: int, partial: Partial) -> list[Period]:
        status = self._statuses.setdefault(partial.survey, SurveyStatus(acceptances=self._mark.acceptances))
        new, status.offset = offset > status.offset, max(offset, status.offset)
        if new:
            self._unsaved.add(partial.survey)
        if isinstance(partial, Part):
            self._gather(offset, partial, status)
            return []
        return self._advance(partial, status) if new else []

    def skip(self, skipped: Skipped) -> None:
        """Go on after offsets that hold no partial, unless that was done before."""
        if skipped.last >= self.next_offset:
            self._is_next(self.next_offset if self.may_skip(skipped) else skipped.last + 1, "the partials go", PLAIN)
            self._advance_to(skipped.last, skipped.epoch)

    def flush(self, live: bool = True, everything: bool = False) -> Flush:
        """Everything that changed since the last flush; with `live`, also what is open.

        Of many surveys a flush has some, those that wait longest, unless `everything` is wanted.
        """
        first: list[Write] = []
        finals: list[Write] = []
        surveys: list[Write] = []
        counted: list[Output] = []
        statuses: list[Output] = []
        waiting = list(self._first | self._changed) if live else []
        current = set(waiting if everything else waiting[:OPEN_AT_ONCE])
        for survey in sorted(self._unsaved | current):
            with self._caring_for(survey):
                before, frozen, written = self._survey_writes(survey) if survey in self._unsaved else ([], [], [])
                deleted = self._finals.take_outdated(survey)
                status, of_periods = self.open(survey) if survey in current else (None, [])
                if status is not None and status != self._told.get(survey, Status(survey=survey)):
                    self._told[survey] = status
                    statuses.append(status.message)
                counted += of_periods
                first += before
                finals += frozen
                surveys += written
                self._deletions += deleted
        for survey in current:
            self._changed.pop(survey, None)
            self._first.pop(survey, None)
        self._published = self._published_through()
        return self._flush(first, finals, [*surveys, self._position_record()], statuses, counted)

    def _survey_writes(self, survey: str) -> tuple[list[Write], list[Write], list[Write]]:
        """Records of a survey that are not written yet: parts, finals, and its status."""
        first = [Write(part_key(self.owner, key), held.encode()) for key, held in self._parts.take_unsaved(survey)]
        for write in first:
            check_size(survey, "a part", write.value or b"", RECORD_BYTES)
        finals = self._finals.take_unsaved(survey)
        return first, finals, [Write(survey_key(self.owner, survey), self._statuses[survey].encode())]

    def _amended(self, record: bytes, survey: str, before: bytes) -> bytes:
        position = MergePosition.decode(record)  # an offset that the survey's record lacks is read again
        position.quarantines[survey] = self._quarantines[survey]
        return position.encode()

    def _forget(self, survey: str, position: bytes) -> None:
        self._statuses.pop(survey, None)
        self._finals.forget(survey)
        for period in self._parts.periods(survey):
            self._parts.take((survey, period))
        self._changed.pop(survey, None)
        self._first.pop(survey, None)
        self._told.pop(survey, None)
        self._unsaved.discard(survey)

    def open(self, survey: str) -> tuple[Status | None, list[Output]]:
        """The status of a survey, and the counts of its open periods as far as they may be published.

        With noise on presence, a status only says what is closed; there is none before the first period is.
        """
        scheme, status = known_scheme(self._lookup, survey), self._statuses.get(survey, SurveyStatus())
        closed = status.closed_everywhere(self._partitions)
        if scheme.presence is not None:
            return Status(survey=survey, closed_through=closed) if closed > NEVER else None, []
        counts = {period: self._counts(scheme, period) for period in self._counted_periods(survey)}
        published = Status(
            survey=survey,
            closed_through=closed,
            open={period: open_reports(found, scheme) for period, found in counts.items()},
            rejects=status.rejects,
            lates=status.lates,
            lost=status.lost,
        )
        if scheme.survey.minimum:
            return published.reduced(scheme.survey.minimum), []
        finals = {period: Final.of(scheme, period, found, NotCounted()) for period, found in counts.items()}
        return published, [message(OPEN, survey, period, final.encode()) for period, final in finals.items()]

    def _gather(self, offset: int, part: Part, status: SurveyStatus) -> None:
        key = part.survey, part.period, part.partition
        held = self._parts.get(key)
        if part.period <= status.through:
            return
        if held is not None and (offset <= held.offset or held.part.closed):
            return
        if held is None or part.closed or part.offset > held.part.offset:
            first = not self._parts.of(part.survey, part.period)
            self._parts.put(key, HeldPart(offset, part))
            status.listed[key] = max(offset, status.listed.get(key, NOTHING))
            self._unsaved.add(part.survey)
            if self._shows(part.survey):
                self._changed[part.survey] = None
                if first:
                    self._first[part.survey] = None

    def _advance(self, progress: Progress, status: SurveyStatus) -> list[Period]:
        survey = progress.survey
        before = status.progress.get(progress.partition)
        if before is not None and progress.offset <= before.offset:
            return []
        closed = status.closed_everywhere(self._partitions)
        status.hear(progress)
        if self._shows(survey) or status.closed_everywhere(self._partitions) > closed:
            self._changed[survey] = None
        return list(self._close(survey, status))

    def _shows(self, survey: str) -> bool:
        """Whether the status follows the reports. With noise on presence, it would show that somebody reported."""
        return known_scheme(self._lookup, survey).presence is None

    def _close(self, survey: str, status: SurveyStatus) -> Iterator[Period]:
        """Make finals of the periods that every partition has closed, from the first period with a report."""
        scheme = known_scheme(self._lookup, survey)
        closed = status.closed_everywhere(self._partitions)
        periods = range(status.through + 1, closed + 1)
        if not status.begun:
            periods = self._first_periods(scheme, closed)
            for period in self._parts.periods(survey):
                if period < periods.start:
                    self._drop_parts((survey, period))
        for period in periods:
            status.through = period
            status.begun = True
            self._make_final(scheme, period)
            yield survey, period
        status.through = max(status.through, closed)
        status.given_up = since(status.given_up, status.through - scheme.survey.horizon + 1)  # in windows

    def _first_periods(self, scheme: Scheme, closed: int) -> range:
        """The periods of the first finals of a survey.

        They begin with the first period that has a report. With noise on presence that would show somebody's presence:
        there they are all periods for which reports are accepted before the first clock record. With a minimum they
        begin with the first period of which something is released; if there is none, with the last one.
        """
        if scheme.presence is not None:
            return range(min(closed + 1, scheme.survey.ahead))
        counted = [period for period in self._counted_periods(scheme.survey.id) if period <= closed]
        if scheme.survey.minimum:
            counted = [period for period in counted if reduced(self._counts(scheme, period), scheme).counts]
            return range(next(iter(counted), max(closed, 0)), closed + 1)
        return range(next(iter(counted), closed + 1), closed + 1)

    def _counted_periods(self, survey: str) -> list[int]:
        """The periods with a report; a part may have none, but late rows of earlier periods."""
        return [t for t in self._parts.periods(survey) if any(part.total for part in self._parts.of(survey, t))]

    def _make_final(self, scheme: Scheme, period: int) -> None:
        key = scheme.survey.id, period
        after = self._published.get(scheme.survey.id, NEVER)
        value = self._finals.make(scheme, period, self._parts.of(*key), after)
        self._outputs.append(message(FINALS, *key, value))
        self._drop_parts(key)

    def _drop_parts(self, key: Period) -> None:
        """Delete the parts of a period that is closed."""
        listed = self._statuses[key[0]].listed
        for part in {*self._parts.take(key), *(part for part in listed if part[:2] == key)}:
            listed.pop(part, None)
            self._deletions.append(Write(part_key(self.owner, part), None))

    def _counts(self, scheme: Scheme, period: int) -> Counts:
        return add_counts([part.counts for part in self._parts.of(scheme.survey.id, period)], scheme)

    def _published_through(self) -> dict[str, int]:
        """The last period with a final, of each survey that has one."""
        return {survey: status.through for survey, status in self._statuses.items() if status.begun}

    def _position_record(self) -> Write:
        """The position, which lists how far the record of each survey has come."""
        for survey in self._unsaved:  # one that is being read again is not as far yet as it was
            self._saved[survey] = max(self._statuses[survey].offset, self._saved.get(survey, NOTHING))
        self._unsaved.clear()
        position = MergePosition(max(self._contained, self._read), self._mark, self._saved, self._quarantines)
        return Write(merged_key(self.owner), position.encode())
