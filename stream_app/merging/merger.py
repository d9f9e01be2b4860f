"""Adding up the counts of all partitions: what is open of a survey, and one final when all have closed a period.

A part with a higher offset replaces one with a lower offset; an equal offset never does; the first closed part of a
partition and period is never replaced. A final is made when every partition has closed the period, and is written to
the state before it is published.
"""

from collections.abc import Iterator

from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.wire import Lookup
from stream_app.counting.partials import Part, Partial, Progress, decode_partial
from stream_app.counting.state import NEVER, Period, known_scheme
from stream_app.finals import Final, NotCounted, Status
from stream_app.finals.final import message
from stream_app.finals.reducing import open_reports
from stream_app.log.codec import RECORD_BYTES, VALUE_BYTES, of_this_release
from stream_app.log.flushes import FINALS, OPEN, Flush, Output, Write
from stream_app.log.log_reader import LogReader
from stream_app.log.marks import NO_EPOCH, since
from stream_app.log.recovery import NONE_FAIL, NOTHING, Errors, Records, check_size
from stream_app.merging.survey import HeldPart, MergedSurvey, MergePosition, SurveyStatus, recover_merge

OPEN_AT_ONCE = 32
"""Of how many surveys a flush has what is open: nothing else happens while it is made."""


class Merger(LogReader):
    """Merges one partition of the partials topic: apply every partial in order, flush from time to time.

    `records`, `log_start` and `failing` as for PartitionCounter. `keyring` derives the noise on presence.
    """

    STATE = "merge"
    POSITION = MergePosition
    _position: MergePosition
    PLAIN = "only workers may write to the partials topic, and it must not be compacted"

    def __init__(
        self,
        owner: int,
        partitions: int,
        lookup: Lookup,
        keyring: Keyring,
        records: Records = (),
        log_start: int = 0,
        failing: Errors = NONE_FAIL,
    ) -> None:
        with of_this_release(f"the merge state of partition {owner} of the partials"):
            state, self._surveys, start, missing = recover_merge(owner, records, log_start, failing)
        super().__init__(owner, state, start, missing)
        self._partitions = partitions
        self._lookup = lookup
        self._keyring = keyring
        self._saved = self._position.surveys  # the offset that the record of each survey contains
        # Surveys whose status may be out of date, the one that waits longest first.
        self._changed = dict.fromkeys(self._surveys)

    @property
    def is_pressing(self) -> bool:
        return super().is_pressing or bool(self._changed or self._unsaved())

    def status(self, survey: str) -> SurveyStatus:
        """The status of a survey. The wall clock repeats a clock record until every partition confirms it here."""
        merged = self._surveys.get(survey)
        return SurveyStatus() if merged is None else merged.status

    def apply(self, offset: int, value: bytes, epoch: int = NO_EPOCH, key: bytes = b"") -> list[Period]:
        """Merge one partial and return the periods it made final. Idempotent: re-applying a partial changes nothing.

        `key` is the survey, in case that the partial cannot be read.
        """
        if not self._is_next(offset):
            return []
        self._advance_to(offset, epoch)
        survey = key.decode("utf-8", "replace")
        if not self._position.is_quarantined(survey):
            with self._caring_for(survey):
                partial = decode_partial(value)
            survey = partial.survey
            if not self._position.is_quarantined(survey):
                with self._caring_for(survey):
                    return self._merge(offset, partial)
        self._saved[survey] = max(offset, self._saved.get(survey, NOTHING))  # it is read again once the survey goes on
        self.passed_over[survey] += 1
        return []

    def _merge(self, offset: int, partial: Partial) -> list[Period]:
        survey, acceptances = partial.survey, self.mark.acceptances
        if survey not in self._surveys:
            self._surveys[survey] = MergedSurvey(self.partition, survey, SurveyStatus(acceptances=acceptances))
        merged = self._surveys[survey]
        status = merged.status
        new, status.offset = offset > status.offset, max(offset, status.offset)
        merged.unsaved |= new
        if isinstance(partial, Part):
            self._gather(offset, partial, merged)
            return []
        return self._advance(partial, merged) if new else []

    def flush(self, live: bool = True, everything: bool = False) -> Flush:
        """Everything that changed since the last flush; with `live`, also what is open.

        Of many surveys a flush has some, those that wait longest, unless `everything` is wanted.
        """
        first: list[Write] = []
        finals: list[Write] = []
        surveys: list[Write] = []
        counted: list[Output] = []
        statuses: list[Output] = []
        waiting = list(self._changed) if live else []
        current = set(waiting if everything else waiting[:OPEN_AT_ONCE])
        for survey in sorted(current.union(self._unsaved())):
            with self._caring_for(survey):
                merged = self._surveys[survey]
                if merged.unsaved:  # one that is being read again is not as far yet as it was
                    self._saved[survey] = max(merged.status.offset, self._saved.get(survey, NOTHING))
                    parts, frozen, written = merged.take_unsaved()
                    for write in parts:
                        check_size(survey, "a part", write.value or b"", RECORD_BYTES)
                    first += parts
                    finals += frozen
                    surveys.append(written)
                self._deletions += merged.take_outdated()
                if survey in current:
                    status, of_periods = self.open(survey)
                    if status is not None and status != (merged.told or Status(survey=survey)):
                        merged.told = status
                        statuses.append(status.message)
                    counted += of_periods
        for survey in current:
            self._changed.pop(survey, None)
        return self._flush(first, finals, counted, statuses, surveys)

    def _unsaved(self) -> list[str]:
        return [survey for survey, merged in self._surveys.items() if merged.unsaved]

    def open(self, survey: str) -> tuple[Status | None, list[Output]]:
        """The status of a survey, and the counts of its open periods as far as they may be published.

        With noise on presence, a status only says what is closed; there is none before the first period is.
        """
        scheme, merged = known_scheme(self._lookup, survey), self._surveys[survey]
        status = merged.status
        closed = status.closed_everywhere(self._partitions)
        if scheme.presence is not None:
            return Status(survey=survey, closed_through=closed) if closed > NEVER else None, []
        counts = {period: merged.counts(scheme, period) for period in merged.counted_periods()}
        published = Status(
            survey=survey,
            closed_through=closed,
            open={period: open_reports(found, scheme) for period, found in counts.items()},
            rejects=status.rejects,
            lates=status.lates,
            lost=status.lost,
        )
        if scheme.survey.threshold:
            return published.reduced(scheme.survey.threshold), []
        if scheme.survey.central is not None:
            return published, []
        finals = {period: Final.of(scheme, period, found, NotCounted()) for period, found in counts.items()}
        return published, [message(OPEN, survey, period, final.encode()) for period, final in finals.items()]

    def _gather(self, offset: int, part: Part, merged: MergedSurvey) -> None:
        key = part.period, part.partition
        held, listed = merged.parts.get(key), merged.status.listed
        if part.period <= merged.status.through:
            return
        if held is not None and (offset <= held.offset or held.part.closed):
            return
        if held is None or part.closed or part.offset > held.part.offset:
            if self._shows(part.survey):
                self._changed[part.survey] = None
            merged.parts[key] = HeldPart(offset, part)
            listed[key] = max(offset, listed.get(key, NOTHING))
            merged.unsaved = True

    def _advance(self, progress: Progress, merged: MergedSurvey) -> list[Period]:
        survey, status = progress.survey, merged.status
        before = status.progress.get(progress.partition)
        if before is not None and progress.offset <= before.offset:
            return []
        closed = status.closed_everywhere(self._partitions)
        status.hear(progress)
        if self._shows(survey) or status.closed_everywhere(self._partitions) > closed:
            self._changed[survey] = None
        return list(self._close(merged))

    def _shows(self, survey: str) -> bool:
        """Whether the status follows the reports. With noise on presence, it would show that somebody reported."""
        return known_scheme(self._lookup, survey).presence is None

    def _close(self, merged: MergedSurvey) -> Iterator[Period]:
        """Make finals of the periods that every partition has closed, from the first period with a report."""
        scheme, status = known_scheme(self._lookup, merged.survey), merged.status
        closed = status.closed_everywhere(self._partitions)
        periods = range(status.through + 1, closed + 1)
        if not status.begun:
            periods = _first_periods(scheme, merged, closed)
            for period in merged.periods():
                if period < periods.start:
                    merged.skip(scheme, period)
                    self._deletions += merged.drop_parts(period)
        for period in periods:
            status.through = period
            status.begun = True
            value = merged.freeze(scheme, period, self._keyring)
            check_size(merged.survey, f"the final of period {period}", value, VALUE_BYTES)
            self._outputs.append(message(FINALS, merged.survey, period, value))
            self._deletions += merged.drop_parts(period)
            yield merged.survey, period
        status.through = max(status.through, closed)
        status.given_up = since(status.given_up, scheme.survey.lost_since(status.through))  # in windows


def _first_periods(scheme: Scheme, merged: MergedSurvey, closed: int) -> range:
    """The periods of the first finals of a survey.

    They begin with the first period that has a report. With noise on presence that would show somebody's presence:
    there they are all periods for which reports are accepted before the first clock record. With `publish_from` they
    begin with the first period of which something is released; if there is none, with the last one.
    """
    if scheme.presence is not None:
        return range(min(closed + 1, scheme.ahead))
    counted = [period for period in merged.counted_periods() if period <= closed]
    if scheme.survey.threshold:
        counted = [period for period in counted if open_reports(merged.counts(scheme, period), scheme)]
        return range(next(iter(counted), max(closed, 0)), closed + 1)
    return range(next(iter(counted), closed + 1), closed + 1)
