"""How far the partitions of an events topic have come, as their owners tell each other: no person, time or value."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from producers.events.sending import Totals


def meaning_of(*parts: object) -> str:
    """A digest of what decides which reports events become: fingerprint, columns and rules."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Counted:
    """What an edge has counted. `totals.through` is the last period that it has sent (see `meaning_of`)."""

    meaning: str = ""
    totals: Totals = field(default_factory=Totals)
    rows: int = 0
    told_apart: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    late: dict[int, int] = field(default_factory=dict)
    """By period: the events that came too late."""


@dataclass(frozen=True)
class PartitionState(Counted):
    """One partition of an events topic. Whoever owns it next goes on from here, and reads open periods again."""

    position: int = 0
    """Records before this offset are counted."""
    restart: int = 0
    """The first record with an event of a period that was not sent."""
    ended: int = -1
    """The last period that has ended, by the events of this partition."""
    open: int | None = None
    """The first period with events that were not sent."""
    idle: bool = False
    """Whether nobody waits for it, because no event came for long."""
    cuts: dict[int, int] = field(default_factory=dict)
    """By period that is being sent: the offset from which on its events are late. What is sent again is the same."""


def next_closed(closed: int, partitions: Mapping[int, PartitionState], count: int) -> int:
    """The period through which all partitions send next; `closed` while one has not sent that, or has not ended more.

    A partition that nothing is known of holds all up. Periods without events are closed with the next one.

    >>> ended = {0: PartitionState(ended=5, open=2), 1: PartitionState(ended=3, open=1), 2: PartitionState(idle=True)}
    >>> next_closed(-1, ended, 3), next_closed(-1, ended, 4)
    (1, -1)
    """
    known = [partitions.get(number, PartitionState()) for number in range(count)]
    if any(state.totals.through < closed for state in known):
        return closed
    ended = min((state.ended for state in known if not state.idle), default=closed)
    first = min((state.open for state in known if state.open is not None), default=ended)
    return max(closed, min(ended, max(first, closed + 1)))
