"""Adding up what the partitions counted: provisional results while a period is open, one final when all have closed it.

A part with a higher offset replaces one with a lower; an equal one never does; a partition's first closed part of a
period is its last word. A final comes when every partition has closed the period, and is frozen before it is published.
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
from stream_app.merging.state import (
    Final,
    HeldPart,
    Place,
    Standing,
    final_key,
    merged_key,
    outdated,
    part_key,
    recover_merge,
)
from stream_app.results.histograms import Histogram, Kind, Live, build_histogram
from stream_app.results.mobility import ClosedPeriod, Reporter, publish_mobility
from stream_app.results.presence_noise import published_cells
from stream_app.results.result_topics import HISTOGRAMS, LIVE, MOBILITY, ResultKey

PLAIN = "the partials topic must be plain: no compaction, no transactions"


class Merger(LogReader):
    """The owner of one partition of the partials topic. Feed it every partial in order, flush now and then.

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
        mobility: Reporter = publish_mobility,
    ) -> None:
        recovered = recover_merge(owner, records, log_start)
        super().__init__(recovered.start, recovered.position.offset, recovered.stale, recovered.missing)
        self.owner = owner
        self._partitions = partitions
        self._lookup = lookup
        self._keyring = keyring
        self._mobility = mobility
        self._position = recovered.position
        self._parts = recovered.parts
        self._finals = recovered.finals
        self._listed = dict(recovered.position.listed)
        self._published = self._through()  # as of the last flush
        self._changed = set(self._position.surveys) | {place[0] for place in self._parts}  # live result out of date?

    @property
    def standings(self) -> Mapping[str, Standing]:
        """How each survey stands; the wall clock's ticks go on until every partition acknowledges them here."""
        return self._position.surveys

    def apply(self, offset: int, value: bytes) -> list[Period]:
        """Merge one partial and say which periods it made final. One that was applied before changes nothing."""
        if not self._is_next(offset, "the partials go", PLAIN):
            return []
        self._read = offset
        partial = decode_partial(value)
        if isinstance(partial, Part):
            self._gather(offset, partial)
            return []
        return self._advance(partial) if offset > self._contained else []

    def flush(self, live: bool = True) -> Flush:
        """All that changed since the last flush; with `live`, the provisional results that changed as well."""
        parts = [
            Write(part_key(self.owner, place), held.encode()) for place, held in self._sorted_parts() if held.unsaved
        ]
        finals = [
            Write(final_key(self.owner, key), final.encode()) for key, final in self._finals.items() if final.unsaved
        ]
        for held in self._parts.values():
            held.unsaved = False
        for final in self._finals.values():
            final.unsaved = False
        self._forget_finals()
        shown = [self._live_message(survey) for survey in sorted(self._changed) if live]
        if live:
            self._changed.clear()
        self._published = self._through()
        return self._flush(parts, finals, self._position_record(), shown)

    def _forget_finals(self) -> None:
        """Let go of finals that nothing will need, though the position may be written over by an older one."""
        for survey in self._changed:
            horizon = known_scheme(self._lookup, survey).survey.horizon
            for key in outdated(self._finals, survey, horizon):
                del self._finals[key]
                self._deletions.append(Write(final_key(self.owner, key), None))

    def live(self, survey: str) -> Live:
        """How a survey stands now.

        Of surveys with noise on presence nothing provisional is said: the noise of a cell is drawn once, so that the
        difference of two provisional results would show exactly how many came in between.
        """
        scheme, standing = known_scheme(self._lookup, survey), self._standing(survey)
        shown = scheme.survey.presence_epsilon is None
        open_periods = sorted({period for name, period, _ in self._parts if name == survey and shown})
        return Live(
            survey=survey,
            closed_through=standing.closed_everywhere(self._partitions),
            open=tuple(self._histogram("provisional", scheme, period)[0] for period in open_periods),
            rejects=standing.rejects,
            lates=standing.lates,
        )

    def _gather(self, offset: int, part: Part) -> None:
        place = part.survey, part.period, part.partition
        held = self._parts.get(place)
        if part.period <= self._standing(part.survey).through:
            return
        if held is not None and (offset <= held.offset or held.part.closed):
            return
        if held is None or part.closed or part.offset > held.part.offset:
            self._parts[place] = HeldPart(offset, part)
            self._changed.add(part.survey)

    def _advance(self, progress: Progress) -> list[Period]:
        survey, standing = progress.survey, self._standing(progress.survey)
        before = standing.progress.get(progress.partition)
        if before is not None and progress.offset <= before.offset:
            return []
        standing.progress[progress.partition] = progress
        self._changed.add(survey)
        return list(self._close(survey, standing))

    def _close(self, survey: str, standing: Standing) -> Iterator[Period]:
        """Make final what every partition has closed; the periods before the first report pass in silence."""
        scheme = known_scheme(self._lookup, survey)
        closed = standing.closed_everywhere(self._partitions)
        first = standing.through + 1
        if not standing.begun:
            counted = [
                held.part.period for place, held in self._parts.items() if place[0] == survey and held.part.total
            ]
            first = min(counted, default=closed + 1)
        for period in range(first, closed + 1):
            standing.through = period
            standing.begun = True
            self._make_final(scheme, period)
            yield survey, period
        standing.through = max(standing.through, closed)

    def _make_final(self, scheme: Scheme, period: int) -> None:
        key = scheme.survey.id, period
        if key not in self._finals:  # else it was frozen before a crash, and is published as it was
            histogram, counts = self._histogram("final", scheme, period)
            report = self._mobility(scheme, period, self._reach(scheme, period, counts))
            outputs = (
                HISTOGRAMS.message(ResultKey(*key), histogram.model_dump_json().encode()),
                MOBILITY.message(ResultKey(*key), report),
            )
            self._finals[key] = Final(outputs, counts, self._published.get(scheme.survey.id, NEVER))
        self._outputs += self._finals[key].outputs
        for place in [place for place in {*self._parts, *self._listed} if place[:2] == key]:
            self._parts.pop(place, None)
            self._listed.pop(place, None)
            self._deletions.append(Write(part_key(self.owner, place), None))

    def _reach(self, scheme: Scheme, period: int, counts: Counts) -> dict[int, ClosedPeriod]:
        """The periods that windows ending with this one can reach back to, as far as reports do."""
        survey = scheme.survey
        earlier = range(max(0, period - survey.horizon + 1), period)
        reached = {t: self._finals[survey.id, t].counts for t in earlier if (survey.id, t) in self._finals}
        reached[period] = counts
        return {
            t: ClosedPeriod(counts, published_cells(counts, scheme, t, self._keyring)) for t, counts in reached.items()
        }

    def _histogram(self, kind: Kind, scheme: Scheme, period: int) -> tuple[Histogram, Counts]:
        parts = [held.part for place, held in self._parts.items() if place[:2] == (scheme.survey.id, period)]
        counts = add_counts([part.counts for part in parts], scheme)
        return build_histogram(kind, scheme, period, counts, self._keyring), counts

    def _live_message(self, survey: str) -> Output:
        return LIVE.message(ResultKey(survey), self.live(survey).model_dump_json().encode())

    def _standing(self, survey: str) -> Standing:
        return self._position.standing(survey)

    def _through(self) -> dict[str, int]:
        """Through where finals are out, by survey that has any."""
        return {survey: standing.through for survey, standing in self._position.surveys.items() if standing.begun}

    def _sorted_parts(self) -> list[tuple[Place, HeldPart]]:
        return sorted(self._parts.items(), key=lambda item: item[0])

    def _position_record(self) -> Write:
        self._position.offset = max(self._contained, self._read)
        held = {place: held.offset for place, held in self._parts.items()}
        self._position.listed = {
            place: max(held.get(place, NOTHING), self._listed.get(place, NOTHING)) for place in {*held, *self._listed}
        }
        return Write(merged_key(self.owner), self._position.encode())
