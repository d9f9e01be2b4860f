"""The position of one partition in memory: how far each survey is counted, and all that belongs to no open period."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from protocols.wire import Lookup, Reject
from stream_app.counting.open_periods import OpenPeriods
from stream_app.counting.partials import Progress, message
from stream_app.counting.recovery import known_scheme
from stream_app.counting.state import Listed, OpenPeriod, Period, Position, Rejects, SurveyClock
from stream_app.log.flushes import Output, Write, state_key
from stream_app.log.marks import Loss, Mark, since
from stream_app.log.quarantines import Quarantine

UNKNOWN = ""  # the survey of a record that could not be read


class PartitionPosition:
    """A recovered position and what was read since. `unsent` are surveys whose rejects or losses the merge may lack."""

    def __init__(self, partition: int, position: Position, periods: OpenPeriods, lookup: Lookup) -> None:
        self._partition = partition
        self._position = position
        self._contained = position.offset
        self._periods = periods
        self._lookup = lookup
        # What the position contains of surveys that are read again because they were quarantined.
        self._behind = {
            survey: quarantine.offset
            for survey, quarantine in position.quarantines.items()
            if quarantine.offset is not None
        }
        quarantines = {survey for survey in position.quarantines if position.is_quarantined(survey)}
        self.unsent = {*self.rejects, *position.lost, *position.losing} - {UNKNOWN, *quarantines}

    @property
    def rejects(self) -> Rejects:
        names = {*self._position.rejects, *self._periods.surveys()}
        return {survey: self._rejects_of(survey) for survey in sorted(names)}

    @property
    def lost(self) -> dict[str, tuple[Loss, ...]]:
        return self._position.losses(self._lookup)

    def clock(self, survey: str) -> SurveyClock:
        return self._position.clock(survey)

    def contains(self, offset: int, survey: str) -> bool:
        """Whether what a record of a survey did to the position is in it."""
        return offset <= self._behind.get(survey, self._contained)

    def refuse(self, survey: str, reject: Reject) -> None:
        """Note that a whole record was refused."""
        self._position.rejects.setdefault(survey, Counter())[reject.reason.value] += reject.rows
        if survey != UNKNOWN:
            self.unsent.add(survey)

    def note_late(self, survey: str, period: int, rows: int) -> None:
        self._position.lates.setdefault(survey, Counter())[period] += rows

    def close(self, survey: str, offset: int, through: int) -> bool:
        """Close a survey through a period, by the record at an offset; False if it was closed that far already."""
        terms, clock = known_scheme(self._lookup, survey).survey, self.clock(survey)
        before = clock.through
        moved = clock.move(offset, through)
        if moved:
            self._position.settle_lost(survey, before, terms.ahead, terms.horizon)
        shown = clock.through - terms.horizon + 1
        lates = self._position.lates.get(survey, Counter())
        for forgotten in [period for period in lates if period < shown]:
            del lates[forgotten]
        if survey in self._position.lost:
            self._position.lost[survey] = since(self._position.lost[survey], shown)
        return moved

    def take_over(self, key: Period, period: OpenPeriod) -> None:
        """Keep of a period that was closed what it refused."""
        self._position.rejects.setdefault(key[0], Counter()).update(period.rejects)
        self._position.open.pop(key, None)

    def progress(self, survey: str, offset: int) -> Output:
        """What the merge must know of a survey besides its counts, as a message."""
        self.unsent.discard(survey)
        rejects, lates = dict(self._rejects_of(survey)), dict(self._position.lates.get(survey, Counter()))
        lost = self._position.lost_of(survey, known_scheme(self._lookup, survey).survey.ahead)
        through = self.clock(survey).through
        return message(Progress(survey, self._partition, offset, through, rejects, lates, lost))

    def restore(self, survey: str, record: bytes) -> None:
        """Set a survey back to what a position record has."""
        self._position.restore(survey, Position.decode(record))
        self.unsent.discard(survey)

    def record(self, read: int, mark: Mark) -> Write:
        """The position after the log was read through an offset.

        It lists through which offset the counter of each open period must be.
        """
        position = self._position
        position.offset = max(self._contained, read)
        position.mark = mark
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
        return Write(state_key("count", self._partition, "position"), position.encode())

    def _rejects_of(self, survey: str) -> Counter[str]:
        return self._position.rejects.get(survey, Counter[str]()) + self._periods.rejects(survey)


def amended(record: bytes, survey: str, before: bytes, quarantine: Quarantine) -> bytes:
    """A position record in which a survey is quarantined, and stands as in the record before."""
    position = Position.decode(record)
    position.restore(survey, Position.decode(before))
    position.quarantines[survey] = quarantine
    return position.encode()
