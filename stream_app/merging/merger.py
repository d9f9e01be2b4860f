"""Adding up the counts of all partitions: provisional results while a period is open, one final when all closed it.

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
from stream_app.counting.partials import Part, Progress, decode_partial
from stream_app.counting.recovery import Records, known_scheme
from stream_app.counting.state import NOTHING, Period
from stream_app.log.flushes import Flush, Output, Write
from stream_app.log.log_reader import LogReader
from stream_app.log.marks import NO_EPOCH
from stream_app.log.skipped import Skipped
from stream_app.merging.state import (
    Final,
    HeldPart,
    PartKey,
    SurveyStatus,
    final_key,
    merged_key,
    outdated,
    part_key,
    recover_merge,
)
from stream_app.results.histograms import Live, build_histogram
from stream_app.results.mobility import BuildMobility, ClosedPeriod, build_mobility
from stream_app.results.presence_noise import Release, release
from stream_app.results.result_topics import HISTOGRAMS, LIVE, MOBILITY, ResultKey

PLAIN = "only workers may write to the partials topic, and it must not be compacted"


class Merger(LogReader):
    """Merges one partition of the partials topic: apply every partial in order, flush from time to time.

    `records` and `log_start` as for PartitionCounter. `keyring` derives the noise on presence.
    """

    def __init__(
        self,
        owner: int,
        partitions: int,
        lookup: Lookup,
        keyring: Keyring,
        records: Records = (),
        log_start: int = 0,
        mobility: BuildMobility = build_mobility,
    ) -> None:
        recovered = recover_merge(owner, records, log_start)
        position = recovered.position
        super().__init__(recovered.start, position.offset, position.mark, recovered.stale, recovered.missing)
        self.owner = owner
        self._partitions = partitions
        self._lookup = lookup
        self._keyring = keyring
        self._mobility = mobility
        self._position = recovered.position
        self._parts = recovered.parts
        self._finals = recovered.finals
        self._listed = dict(recovered.position.listed)
        self._published = self._published_through()  # as of the last flush
        # Surveys whose live result may be out of date.
        self._changed = set(self._position.surveys) | {survey for survey, _, _ in self._parts}

    @property
    def statuses(self) -> Mapping[str, SurveyStatus]:
        """The status of each survey. The wall clock repeats a clock record until every partition confirms it here."""
        return self._position.surveys

    def apply(self, offset: int, value: bytes, epoch: int = NO_EPOCH) -> list[Period]:
        """Merge one partial and return the periods it made final. Idempotent: re-applying a partial changes nothing."""
        if not self._is_next(offset, "the partials go", PLAIN):
            return []
        self._advance_to(offset, epoch)
        partial = decode_partial(value)
        if isinstance(partial, Part):
            self._gather(offset, partial)
            return []
        return self._advance(partial) if offset > self._contained else []

    def skip(self, skipped: Skipped) -> None:
        """Go on after offsets that hold no partial, unless that was done before."""
        if skipped.last >= self.next_offset:
            self._is_next(self.next_offset if self.may_skip(skipped) else skipped.last + 1, "the partials go", PLAIN)
            self._advance_to(skipped.last, skipped.epoch)

    def flush(self, live: bool = True) -> Flush:
        """Everything that changed since the last flush; with `live`, also the live results that changed."""
        parts = [
            Write(part_key(self.owner, part), held.encode()) for part, held in self._sorted_parts() if held.unsaved
        ]
        finals = [
            Write(final_key(self.owner, key), final.encode()) for key, final in self._finals.items() if final.unsaved
        ]
        for held in self._parts.values():
            held.unsaved = False
        for final in self._finals.values():
            final.unsaved = False
        self._delete_outdated_finals()
        shown = sorted(survey for survey in self._changed if live and (self._shows(survey) or self._has_closed(survey)))
        messages = [self._live_message(survey) for survey in shown]
        if live:
            self._changed.clear()
        self._published = self._published_through()
        return self._flush(parts, finals, self._position_record(), messages)

    def _delete_outdated_finals(self) -> None:
        """Delete finals that are not needed again, even if a late write replaces the position by an older one."""
        for survey in self._changed:
            horizon = known_scheme(self._lookup, survey).survey.horizon
            for key in outdated(self._finals, survey, horizon):
                del self._finals[key]
                self._deletions.append(Write(final_key(self.owner, key), None))

    def live(self, survey: str) -> Live:
        """The live result of a survey. With noise on presence it only says what is closed."""
        scheme, status = known_scheme(self._lookup, survey), self._position.status(survey)
        exact = scheme.presence is None
        open_periods = sorted({period for name, period, _ in self._parts if name == survey and exact})
        return Live(
            survey=survey,
            closed_through=status.closed_everywhere(self._partitions),
            open=tuple(
                build_histogram("provisional", scheme, period, self._counts(scheme, period)) for period in open_periods
            ),
            rejects=status.rejects if exact else {},
            lates=status.lates if exact else {},
            lost=status.lost if exact else {},
        )

    def _gather(self, offset: int, part: Part) -> None:
        key = part.survey, part.period, part.partition
        held = self._parts.get(key)
        if part.period <= self._position.status(part.survey).through:
            return
        if held is not None and (offset <= held.offset or held.part.closed):
            return
        if held is None or part.closed or part.offset > held.part.offset:
            self._parts[key] = HeldPart(offset, part)
            if self._shows(part.survey):
                self._changed.add(part.survey)

    def _advance(self, progress: Progress) -> list[Period]:
        survey, status = progress.survey, self._position.status(progress.survey)
        before = status.progress.get(progress.partition)
        if before is not None and progress.offset <= before.offset:
            return []
        closed = status.closed_everywhere(self._partitions)
        status.hear(progress)
        if self._shows(survey) or status.closed_everywhere(self._partitions) > closed:
            self._changed.add(survey)
        return list(self._close(survey, status))

    def _shows(self, survey: str) -> bool:
        """Whether live results follow the reports. With noise on presence, one would show that somebody reported."""
        return known_scheme(self._lookup, survey).presence is None

    def _has_closed(self, survey: str) -> bool:
        return self._position.status(survey).closed_everywhere(self._partitions) > NEVER

    def _close(self, survey: str, status: SurveyStatus) -> Iterator[Period]:
        """Make finals of the periods that every partition has closed, from the first period with a report."""
        scheme = known_scheme(self._lookup, survey)
        closed = status.closed_everywhere(self._partitions)
        periods = range(status.through + 1, closed + 1)
        if not status.begun:
            periods = self._first_periods(scheme, closed)
        for period in periods:
            status.through = period
            status.begun = True
            self._make_final(scheme, period)
            yield survey, period
        status.through = max(status.through, closed)

    def _first_periods(self, scheme: Scheme, closed: int) -> range:
        """The periods of the first finals of a survey.

        They begin with the first period that has a report. With noise on presence that would show somebody's presence:
        there they are all periods for which reports are accepted before the first clock record.
        """
        if scheme.presence is not None:
            return range(min(closed + 1, scheme.survey.ahead))
        survey = scheme.survey.id
        counted = [held.part.period for key, held in self._parts.items() if key[0] == survey and held.part.total]
        return range(min(counted, default=closed + 1), closed + 1)

    def _make_final(self, scheme: Scheme, period: int) -> None:
        key = scheme.survey.id, period
        if key not in self._finals:  # else it was written before a crash, and is published as written
            counts = self._closed(scheme, period)
            histogram = build_histogram("final", scheme, period, counts)
            report = self._mobility(scheme, period, self._window_periods(scheme, period, counts))
            outputs = (
                HISTOGRAMS.message(ResultKey(*key), histogram.model_dump_json().encode()),
                MOBILITY.message(ResultKey(*key), report),
            )
            self._finals[key] = Final(outputs, counts, self._published.get(scheme.survey.id, NEVER))
        self._outputs += self._finals[key].outputs
        for part in [part for part in {*self._parts, *self._listed} if part[:2] == key]:
            self._parts.pop(part, None)
            self._listed.pop(part, None)
            self._deletions.append(Write(part_key(self.owner, part), None))

    def _window_periods(self, scheme: Scheme, period: int, counts: ClosedPeriod) -> dict[int, ClosedPeriod]:
        """All periods of the windows that end with this one, from the first period with a final."""
        survey = scheme.survey
        known: dict[int, ClosedPeriod] = {period: counts}
        for earlier in range(period - 1, max(-1, period - survey.horizon), -1):
            if (survey.id, earlier) not in self._finals:
                break
            known[earlier] = self._finals[survey.id, earlier].counts
        return known

    def _closed(self, scheme: Scheme, period: int) -> ClosedPeriod:
        """What is kept of a period that is closed: its counts or, with noise on presence, its release."""
        counts = self._counts(scheme, period)
        if scheme.presence is None:
            return counts
        before = self._finals.get((scheme.survey.id, period - 1))
        known = before.counts if before is not None and isinstance(before.counts, Release) else None
        late = sum(part.late for part in self._parts_of(scheme.survey.id, period))
        return release(counts, late, scheme, period, known, self._keyring)

    def _counts(self, scheme: Scheme, period: int) -> Counts:
        return add_counts([part.counts for part in self._parts_of(scheme.survey.id, period)], scheme)

    def _parts_of(self, survey: str, period: int) -> list[Part]:
        return [held.part for key, held in self._parts.items() if key[:2] == (survey, period)]

    def _live_message(self, survey: str) -> Output:
        return LIVE.message(ResultKey(survey), self.live(survey).model_dump_json().encode())

    def _published_through(self) -> dict[str, int]:
        """The last period with a final, of each survey that has one."""
        return {survey: status.through for survey, status in self._position.surveys.items() if status.begun}

    def _sorted_parts(self) -> list[tuple[PartKey, HeldPart]]:
        return sorted(self._parts.items(), key=lambda item: item[0])

    def _position_record(self) -> Write:
        self._position.offset = max(self._contained, self._read)
        self._position.mark = self._mark
        held = {part: held.offset for part, held in self._parts.items()}
        self._position.listed = {
            part: max(held.get(part, NOTHING), self._listed.get(part, NOTHING)) for part in {*held, *self._listed}
        }
        return Write(merged_key(self.owner), self._position.encode())
