"""Finals that the merge has frozen: each is in its state before it is published, and is published with these bytes.

    merge/Q/final/SURVEY/PERIOD     the bytes of the final, and the last period that was published before it

Without this record, a final that a crash has left half published would be made again from parts that may be deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from protocols.randomness import Keyring
from protocols.scheme import Scheme
from stream_app.counting.clocks import NEVER
from stream_app.counting.counters import Counts, add_counts
from stream_app.counting.partials import Part
from stream_app.counting.state import Period
from stream_app.finals import Final, NotCounted, Release, release
from stream_app.log.codec import pack, unpack
from stream_app.log.flushes import Write
from stream_app.log.quarantines import check_size


def final_key(owner: int, period: Period) -> bytes:
    return "/".join(map(str, ("merge", owner, "final", *period))).encode()


@dataclass
class Frozen:
    """The bytes of a final. `after` is the last period that was published before it."""

    value: bytes
    after: int = NEVER
    unsaved: bool = True

    def encode(self) -> bytes:
        return pack({"after": self.after}, [np.frombuffer(self.value, dtype=np.uint8)])

    @staticmethod
    def decode(record: bytes) -> Frozen:
        head, (value,) = unpack(record)
        return Frozen(value.tobytes(), head["after"], unsaved=False)


class FrozenFinals:
    """Frozen finals by survey and period, each of at most `limit` bytes. `keyring` derives the noise on presence."""

    def __init__(self, owner: int, keyring: Keyring, limit: int) -> None:
        self._owner = owner
        self._keyring = keyring
        self._limit = limit
        self._finals: defaultdict[str, dict[int, Frozen]] = defaultdict(dict)

    def add(self, survey: str, finals: dict[int, Frozen]) -> None:
        """Add recovered finals."""
        self._finals[survey] = finals

    def make(self, scheme: Scheme, period: int, parts: Sequence[Part], after: int) -> bytes:
        """The final of a period, after one was published through the period `after`.

        One that was written before a crash is kept as written.
        """
        survey, finals = scheme.survey.id, self._finals[scheme.survey.id]
        if period not in finals:
            exact, missing = add_counts([part.counts for part in parts], scheme), NotCounted.of(parts)
            counts: Counts | Release = exact
            if scheme.presence is not None:
                late = sum(missing.late.values())
                counts = release(exact, late, scheme, period, self._release(survey, period - 1), self._keyring)
            value = Final.of(scheme, period, counts, missing).encode()
            check_size(survey, f"the final of period {period}", value, self._limit)
            finals[period] = Frozen(value, after)
        return finals[period].value

    def _release(self, survey: str, period: int) -> Release | None:
        """The release of an earlier period, if it is still there: the next one agrees with it."""
        if period not in self._finals[survey]:
            return None
        counts = Final.decode(self._finals[survey][period].value).counts
        return counts if isinstance(counts, Release) else None

    def take_unsaved(self, survey: str) -> list[Write]:
        """The records of a survey's finals that are not written yet; from now on they count as written."""
        writes = []
        for period, final in self._finals[survey].items():
            if final.unsaved:
                final.unsaved = False
                writes.append(Write(final_key(self._owner, (survey, period)), final.encode()))
        return writes

    def take_outdated(self, survey: str) -> list[Write]:
        """Deletions of finals that are not needed again, even if a late write replaces the position by an older one."""
        periods = outdated(self._finals[survey])
        for period in periods:
            del self._finals[survey][period]
        return [Write(final_key(self._owner, (survey, period)), None) for period in periods]

    def forget(self, survey: str) -> None:
        self._finals.pop(survey, None)


def outdated(finals: Mapping[int, Frozen]) -> list[int]:
    """Periods of one survey whose finals are published, and that come before any period whose final may be made again.

    Such a period comes after the last one that is known, from the frozen finals, to be published. The release of the
    period before it must still be there.
    """
    published_through = max((final.after for final in finals.values()), default=NEVER)
    return [period for period in finals if period < published_through]
