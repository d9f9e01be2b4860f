"""What the merge holds of one survey: its status, the newest part of each partition, and its frozen finals.

A final is in the state before it is published, and is published with these bytes. Otherwise one that a crash has left
half published would be made again from parts that may be deleted.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from analytics.windows import UnitSum, UnitSums
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey import UNITS
from stream_app.counting.counters import Counts, add_counts
from stream_app.counting.partials import Part, decode_partial, encode_partial
from stream_app.counting.state import NEVER
from stream_app.finals import Final, NotCounted, Release, Status, published_sums, release, sums_through
from stream_app.log.codec import pack, unpack
from stream_app.log.flushes import Write, state_key
from stream_app.merging.state import PartKey, SurveyStatus


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

    `sums` are those of calendar units through the period: the next final goes on with them.
    """

    value: bytes
    after: int = NEVER
    unsaved: bool = True
    sums: UnitSums = field(default_factory=dict)

    def encode(self) -> bytes:
        units = {unit: [found.head, list(found.N)] for unit, found in self.sums.items()}
        supports = [supports for found in self.sums.values() for supports in found.N.values()]
        head = {"after": self.after, **({"units": units} if units else {})}
        return pack(head, [np.frombuffer(self.value, dtype=np.uint8), *supports])

    @staticmethod
    def decode(record: bytes) -> "Frozen":
        head, (value, *supports) = unpack(record)
        each, sums = iter(supports), {}
        for unit, (numbers, names) in sorted(head.get("units", {}).items(), key=lambda item: UNITS.index(item[0])):
            sums[unit] = UnitSum(**numbers, N={name: next(each) for name in names})
        return Frozen(value.tobytes(), head["after"], False, sums)


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
        None  # its last status. A repetition would show that there is a report, where a minimum hides it
    )
    skipped: UnitSums = field(default_factory=dict)  # sums of units through the period before the first final

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
            exact, missing = self.counts(scheme, period), NotCounted.of(self.of(period))
            held = self.finals.get(period - 1)
            before = self.skipped if held is None else held.sums
            counts: Counts | Release = exact
            if scheme.presence is not None:
                counts = release(exact, scheme, period, self._release(period - 1), keyring, before)
            final = Final.of(scheme, period, counts, missing)
            since = period if held is None and self.published > NEVER else 0
            sums = sums_through(scheme, period, counts, final.counts, missing, before, since)
            final = replace(final, units=published_sums(sums, scheme, period))
            self.finals[period] = Frozen(final.encode(), self.published, sums=sums)
        return self.finals[period].value

    def skip(self, scheme: Scheme, period: int) -> None:
        """Take a period that gets no final into the sums of its units."""
        missing = NotCounted.of(self.of(period))
        self.skipped = sums_through(scheme, period, self.counts(scheme, period), {}, missing, self.skipped)

    def _release(self, period: int) -> Release | None:
        """The release of an earlier period, if it is still there: the next one agrees with it."""
        counts = Final.decode(self.finals[period].value).counts if period in self.finals else None
        return counts if isinstance(counts, Release) else None

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

        They are published, and of periods before any whose final may be made again. Such a period comes after the last
        one that is known, from the frozen finals, to be published. The release of the period before it must still be
        there.
        """
        published_through = max((final.after for final in self.finals.values()), default=NEVER)
        outdated = [period for period in self.finals if period < published_through]
        for period in outdated:
            del self.finals[period]
        return [Write(self._key("final", period), None) for period in outdated]

    def _key(self, kind: str, *place: int) -> bytes:
        return state_key("merge", self.owner, kind, self.survey, *place)
