"""What the merge holds of one survey: its status, the newest part of each partition, and its frozen finals.

    merge/Q/position                          last offset, which log, {survey: the offset its record contains},
                                              {survey that is or was quarantined: its offset}
    merge/Q/survey/SURVEY                     its last offset, the status of the survey, {part: its offset}
    merge/Q/accepted                          what an operator has accepted: see `stream_app.log.marks.Acceptance`
    merge/Q/resumed/SURVEY                    that a survey goes on: see `stream_app.log.recovery.resumption`
    merge/Q/part/SURVEY/PERIOD/PARTITION      the newest part of one partition, and its offset in the partials topic
    merge/Q/final/SURVEY/PERIOD               the bytes of a final, and the last period published before it

Q is the partition of the partials topic. It is recovered from these records by the same rule as the counting state.

A final is in the state before it is published, and is published with these bytes. Otherwise one that a crash has left
half published would be made again from parts that may be deleted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np

from analytics.windows import Table, WindowKey, WindowSum, WindowSums
from protocols.errors import StateError
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey import UNITS, CalendarVisits, Unit
from stream_app.counting.counters import Counts, add_counts
from stream_app.counting.partials import Part, Progress, decode_partial, encode_partial
from stream_app.counting.state import NEVER
from stream_app.finals import (
    Final,
    Noise,
    NotCounted,
    Status,
    exact_windows,
    noised_period,
    noised_windows,
    released_units,
    sums_through,
    with_visits,
)
from stream_app.log.codec import VERSION, Array, pack, pack_position, unpack
from stream_app.log.flushes import Write, state_key
from stream_app.log.marks import Loss, added
from stream_app.log.recovery import NEVER_QUARANTINED, NOTHING, Errors, LogPosition, Records, StateRecords, resume_after

PartKey = tuple[int, int]  # period, partition
K = TypeVar("K", str, int)


@dataclass
class SurveyStatus:
    """The status of one survey in the merge: the progress of every partition, and the last published final."""

    offset: int = NOTHING  # of the last partial of this survey
    through: int = NEVER  # the last period that has a final or needs none
    begun: bool = False  # periods before the first report get no final
    progress: dict[int, Progress] = field(default_factory=dict)  # by partition
    listed: dict[PartKey, int] = field(default_factory=dict)  # the offset that each part record must contain
    losing: int = 0  # how many reports are lost at most, with partials that were given up
    unheard: set[int] = field(default_factory=set)  # partitions that have not sent progress since then
    closing: tuple[int, ...] = ()  # the first and the last period that the others may have closed in lost partials
    given_up: list[Loss] = field(default_factory=list)  # earlier ones that windows can still include
    acceptances: int = 0  # how often partials were given up, as far as this status takes it into account

    def lose(self, reports: int) -> None:
        """Partials are lost. A partition whose next progress closes periods may have closed them in a lost one."""
        self.losing += reports
        self.unheard = set(self.progress)

    def hear(self, progress: Progress) -> None:
        """Take progress of a partition."""
        self.progress[progress.partition] = progress
        if progress.partition in self.unheard:
            self.unheard.discard(progress.partition)
            if progress.through > self.through:
                bounds = *self.closing, self.through + 1, progress.through
                self.closing = min(bounds), max(bounds)
            if not self.unheard:
                self.given_up += self._given_up_now
                self.losing, self.closing = 0, ()

    def closed_everywhere(self, partitions: int) -> int:
        """The last period that every partition has closed."""
        if len(self.progress) < partitions:
            return NEVER
        return min(progress.through for progress in self.progress.values())

    @property
    def rejects(self) -> dict[str, int]:
        """Rows refused by all partitions since the beginning, by reason."""
        return _added(progress.rejects for progress in self.progress.values())

    @property
    def lates(self) -> dict[int, int]:
        """Late rows of all partitions by period, for the periods that windows can still include."""
        return _added(progress.lates for progress in self.progress.values())

    @property
    def lost(self) -> tuple[Loss, ...]:
        """Reports that are lost at most in all partitions, for the periods that windows can still include."""
        counted = [loss for progress in self.progress.values() for loss in progress.lost]
        return added([*self.given_up, *self._given_up_now, *counted])

    @property
    def _given_up_now(self) -> list[Loss]:
        return [Loss(self.closing[0], self.closing[1], self.losing)] if self.closing else []

    def encode(self) -> bytes:
        progress = [
            [p.partition, p.offset, p.through, p.rejects, sorted(p.lates.items()), p.lost]
            for _, p in sorted(self.progress.items())
        ]
        listed = [[period, partition, offset] for (period, partition), offset in sorted(self.listed.items())]
        losing = [self.losing, sorted(self.unheard), self.closing, self.given_up, self.acceptances]
        head = {"offset": self.offset, "through": self.through, "begun": self.begun}
        return pack_position({**head, "progress": progress, "listed": listed, "losing": losing})

    @staticmethod
    def decode(survey: str, data: bytes) -> "SurveyStatus":
        head, _ = unpack(data)
        progress = {
            partition: Progress(survey, partition, offset, through, rejects, dict(lates), _losses(lost))
            for partition, offset, through, rejects, lates, lost in head["progress"]
        }
        listed = {(period, partition): offset for period, partition, offset in head["listed"]}
        losing, unheard, closing, given_up, acceptances = head["losing"]
        lost = losing, set(unheard), tuple(closing), list(_losses(given_up)), acceptances
        return SurveyStatus(head["offset"], head["through"], head["begun"], progress, listed, *lost)


def _losses(heads: Iterable[list[int]]) -> tuple[Loss, ...]:
    return tuple(Loss(*head) for head in heads)


def _added(parts: Iterable[dict[K, int]]) -> dict[K, int]:
    totals: Counter[K] = Counter()
    for part in parts:
        totals.update(part)
    return {key: totals[key] for key in sorted(totals)}


@dataclass
class MergePosition(LogPosition):
    """The offset through which the partials are merged, and the offset that each survey's record must contain."""

    surveys: dict[str, int] = field(default_factory=dict)

    def offset_of(self, survey: str) -> int:
        return self.surveys.get(survey, self.offset)


@dataclass
class HeldPart:
    """The newest part of one partition, and its offset in the partials topic."""

    offset: int
    part: Part
    unsaved: bool = True

    def encode(self) -> bytes:
        return pack({"offset": self.offset}, [np.frombuffer(encode_partial(self.part), dtype=np.uint8)])

    @staticmethod
    def decode(data: bytes) -> "HeldPart":
        head, (partial,) = unpack(data)
        part = decode_partial(partial.tobytes())
        assert isinstance(part, Part)
        return HeldPart(head["offset"], part, unsaved=False)


@dataclass
class Frozen:
    """The bytes of a final. `after` is the last period that was published before it.

    `sums` are those of the windows that go on after the period: the next final goes on with them. None: they are not
    known, because release 0.2 has made the final.
    """

    value: bytes
    after: int = NEVER
    unsaved: bool = True
    sums: WindowSums | None = field(default_factory=dict)
    windowed: bool = False  # whether the final has windows: release 0.2 knows only sums of calendar units

    def encode(self) -> bytes:
        if not self.windowed:
            units = {unit: [found.head, list(found.N)] for (unit, _), found in (self.sums or {}).items()}
            supports = [N for found in (self.sums or {}).values() for N in found.N.values()]
            head = {"after": self.after, **({"units": units} if units else {})}
            return pack(head, [np.frombuffer(self.value, dtype=np.uint8), *supports])
        heads = []
        arrays: list[Array] = [np.frombuffer(self.value, dtype=np.uint8)]
        for (series, first), found in (self.sums or {}).items():
            visits = {name: [table.n, table.periods] for name, table in found.visits.items()}
            heads.append([series, first, found.head, list(found.N), visits])
            arrays += [*found.N.values(), *(table.N for table in found.visits.values())]
        return pack({"after": self.after, "windows": heads}, arrays, version=VERSION)

    @staticmethod
    def decode(record: bytes) -> "Frozen":
        head, (value, *arrays) = unpack(record)
        each = iter(arrays)
        if "windows" not in head:
            sums_of_units = _sums_of_units(head.get("units", {}), each)
            return Frozen(value.tobytes(), head["after"], unsaved=False, sums=sums_of_units)
        sums: dict[WindowKey, WindowSum] = {}
        for series, first, numbers, names, visits in head["windows"]:
            found = WindowSum.of_head(numbers, {name: next(each) for name in names})
            tables = {name: Table(n, next(each), periods) for name, (n, periods) in visits.items()}
            sums[series, first] = replace(found, visits=tables)
        return Frozen(value.tobytes(), head["after"], unsaved=False, sums=sums, windowed=True)


def _sums_of_units(units: Mapping[str, Any], arrays: Iterator[Array]) -> WindowSums | None:
    """The sums of calendar units; None where there are none, or release 0.2 has kept them with noise."""
    sums = {}
    for unit, (numbers, names) in sorted(units.items(), key=lambda item: UNITS.index(item[0])):
        sums[unit, numbers["first"]] = WindowSum.of_head(numbers, {name: next(arrays) for name in names})
        if any(numbers.get("cells", ())):
            return None
    return sums or None


def _by_first_of_unit(sums: WindowSums, scheme: Scheme) -> WindowSums:
    """The sums by the first period of their unit: where earlier periods were not known, a sum begins later."""
    visits = scheme.visits
    if not isinstance(visits, CalendarVisits):
        return sums
    found = {}
    for (series, first), held in sums.items():
        own_first = visits.first(cast(Unit, series), held.first) if series in UNITS else first
        found[series, own_first] = held
    return found


@dataclass
class MergedSurvey:
    """The state of one survey in the merge. Its records are under `merge/owner/`."""

    owner: int
    survey: str
    status: SurveyStatus
    parts: dict[PartKey, HeldPart] = field(default_factory=dict)
    finals: dict[int, Frozen] = field(default_factory=dict)
    is_recorded: bool = False  # its status was found in the state
    unsaved: bool = False  # its status must be written again
    published: int = NEVER  # the last period that had a final when this was last written
    told: Status | None = (
        None  # its last status. A repetition would show that there is a report, where publish_from hides it
    )
    skipped: WindowSums = field(default_factory=dict)  # sums of windows through the period before the first final

    @property
    def published_through(self) -> int:
        """The last period that is known, from the frozen finals, to be published."""
        return max((final.after for final in self.finals.values()), default=NEVER)

    def periods(self) -> list[int]:
        """The periods that have parts, in order."""
        return sorted({period for period, _ in self.parts})

    def counted_periods(self) -> list[int]:
        """The periods with a report; a part may have none, but late rows of earlier periods."""
        return sorted({period for (period, _), held in self.parts.items() if held.part.total})

    def of(self, period: int) -> list[Part]:
        """The parts of one period."""
        return [held.part for (number, _), held in self.parts.items() if number == period]

    def counts(self, scheme: Scheme, period: int) -> Counts:
        return add_counts([part.counts for part in self.of(period)], scheme)

    def freeze(self, scheme: Scheme, period: int, keyring: Keyring) -> bytes:
        """The final of a period; noise derives from the keyring. One that was written before a crash stays as it is."""
        if period not in self.finals:
            final, sums = self._made(scheme, period, keyring)
            windowed = final.windows is not None
            self.finals[period] = Frozen(final.encode(), self.published, sums=sums, windowed=windowed)
        return self.finals[period].value

    def _made(self, scheme: Scheme, period: int, keyring: Keyring) -> tuple[Final, WindowSums]:
        """The final of a period, and the sums of the windows that go on after it."""
        counts, missing = self.counts(scheme, period), NotCounted.of(self.of(period))
        before, since = self._sums_before(scheme, period)
        sums = sums_through(scheme, period, counts, missing, before, since)
        if scheme.presence is not None:
            noise = Noise(scheme, keyring)
            released = noised_period(scheme, period, counts, noise)
            sums = with_visits(sums, scheme, period, released)
            windows, going_on = noised_windows(scheme, period, counts, sums, noise)
            return Final.of_windows(scheme, period, released, windows), going_on
        final = Final.of(scheme, period, counts, missing)
        if final.windows is None:
            return replace(final, units=released_units(sums, scheme, period)), sums
        sums = with_visits(sums, scheme, period, final.counts)
        return replace(final, windows=exact_windows(scheme, period, counts, sums)), sums

    def _sums_before(self, scheme: Scheme, period: int) -> tuple[WindowSums, int]:
        """The sums through the period before, and with which period the next ones begin, if they are not known."""
        held = self.finals.get(period - 1)
        if held is None:
            is_first = self.published == NEVER and not self.finals
            return self.skipped, 0 if is_first else period
        # A window that began before, and has no sum there, is not known from its beginning: it gets none later either.
        if held.sums is None:
            return {}, period
        return _by_first_of_unit(held.sums, scheme), period

    def skip(self, scheme: Scheme, period: int) -> None:
        """Take a period that gets no final into the sums of its windows."""
        missing = NotCounted.of(self.of(period))
        self.skipped = sums_through(scheme, period, self.counts(scheme, period), missing, self.skipped)

    def drop_parts(self, period: int) -> list[Write]:
        """Deletions of the parts of a period that is closed."""
        dropped = [part for part in {**self.parts, **self.status.listed} if part[0] == period]
        for part in dropped:
            self.parts.pop(part, None)
            self.status.listed.pop(part, None)
        return [Write(self._key("part", *part), None) for part in dropped]

    def take_unsaved(self) -> tuple[list[Write], list[Write], Write]:
        """Records that are not written yet: parts, finals, and the status. From now on they count as written."""
        self.unsaved = False
        if self.status.begun:
            self.published = self.status.through
        parts = [Write(self._key("part", *key), one.encode()) for key, one in sorted(self.parts.items()) if one.unsaved]
        finals = [Write(self._key("final", key), one.encode()) for key, one in self.finals.items() if one.unsaved]
        saved: list[HeldPart | Frozen] = [*self.parts.values(), *self.finals.values()]
        for one in saved:
            one.unsaved = False
        return parts, finals, Write(self._key("survey"), self.status.encode())

    def take_outdated(self) -> list[Write]:
        """Deletions of finals that are not needed again, even if a late write replaces the position by an older one.

        They are published, and of periods before any whose final may be made again. Such a period comes after
        `published_through`. The release of the period before it must still be there.
        """
        through = self.published_through
        outdated = [period for period in self.finals if period < through]
        for period in outdated:
            del self.finals[period]
        return [Write(self._key("final", period), None) for period in outdated]

    def _key(self, kind: str, *place: int) -> bytes:
        return state_key("merge", self.owner, kind, self.survey, *place)


Merged = dict[str, MergedSurvey]  # by survey


def recover_merge(
    owner: int, records: Records, log_start: int, failing: Errors
) -> tuple[StateRecords[MergePosition], Merged, int, str]:
    """Recover the merge state of one partition of the partials topic from records of any age, in any order."""
    state = StateRecords("merge", owner, records, MergePosition, failing)
    position, log_start = state.position, state.log_start(log_start)
    surveys = state.recover_each(lambda survey, group: _recover_survey(owner, survey, group, position, state.lost))
    start = _start(position, surveys)
    missing = ""
    if start + 1 < log_start:
        missing = (
            f"partition {owner} of the partials: offsets {start + 1} to {log_start - 1} are no longer in the log and "
            "not all of them are in the state; periods that they closed may lack reports"
        )
        for merged in surveys.values():  # the log no longer has them: do not look for them at the next recovery
            merged.status.listed = {part: due for part, due in merged.status.listed.items() if due >= log_start}
            merged.unsaved = True
        for name, due in position.surveys.items():
            if due < log_start and not position.is_quarantined(name):
                position.surveys[name] = surveys[name].status.offset if name in surveys else NOTHING
        start = log_start - 1
    return state, surveys, start, missing


def _start(position: MergePosition, surveys: Mapping[str, MergedSurvey]) -> int:
    """After which offset to read on."""
    going_on = {name: due for name, due in position.surveys.items() if not position.is_quarantined(name)}
    held = {name: merged.status.offset for name, merged in surveys.items() if merged.is_recorded}
    for name in going_on.keys() - held.keys():  # one that was quarantined before it had a record
        offset = position.quarantines.get(name, NEVER_QUARANTINED).offset
        held[name] = NOTHING if offset is None else offset
    of_parts = [
        resume_after(position.offset, merged.status.listed, {key: part.offset for key, part in merged.parts.items()})
        for merged in surveys.values()
    ]
    return min([resume_after(position.offset, going_on, held), *of_parts])


def _recover_survey(
    owner: int, survey: str, records: Mapping[bytes, bytes], position: MergePosition, lost: int
) -> tuple[MergedSurvey, list[Write]]:
    """The state of one survey, and the records of it that are not needed.

    Once an operator has let it go on, a part that cannot be read is read again.
    """
    acceptances = position.mark.acceptances
    merged = MergedSurvey(owner, survey, SurveyStatus(acceptances=acceptances))
    written: dict[bytes, tuple[int, int]] = {}
    for key, value in records.items():
        _, _, kind, _, *rest = key.decode().split("/")
        if kind == "survey":
            merged.status = SurveyStatus.decode(survey, value)
            merged.is_recorded = True
        elif kind == "final":
            merged.finals[int(rest[0])] = Frozen.decode(value)
        else:
            written[key] = int(rest[0]), int(rest[1])
    status = merged.status
    if status.acceptances < acceptances:
        status.lose(lost)
        status.acceptances = acceptances
        merged.unsaved = True
    # Finals that were published cannot be made again: their parts are deleted.
    if (published := merged.published_through) > status.through:  # a late write has replaced it by an older one
        status.through, status.begun = published, True
    if status.begun:
        merged.published = status.through
    stale = []
    for key, place in written.items():
        if place[0] <= status.through:
            stale.append(Write(key, None))
            continue
        try:
            merged.parts[place] = HeldPart.decode(records[key])
        except StateError:
            if survey not in position.quarantines:
                raise
    # Parts of periods that have a final are not needed again.
    status.listed = {part: due for part, due in status.listed.items() if part[0] > status.through}
    return merged, stale
