"""Which log a state contains, whether the log that is found now is still that one, and how much is lost if it is not.

A topic that was deleted and made again has another id. A log that lost its end in an election has a leader epoch that
ended earlier than it had before, also when the log has grown again since. Comparing offsets alone finds neither.

How many reports are lost at most is known of some periods together: it is not known in which of them they were.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import NamedTuple

from stream_app.log.codec import pack, unpack

NO_EPOCH = -1  # no record was read, or its leader epoch is not known


@dataclass(frozen=True)
class Mark:
    """What a state knows of the log that it contains.

    `topic` is the topic's id ("" before one was seen), `epoch` the leader epoch of the last record. Offsets of the
    state go on when a log is replaced by another one: they are those of the log plus `shift`, and those below `floor`
    were in an earlier log. Records that the log lacks before the offset `gaps_before` were given up by an operator;
    `acceptances` is how often one has let the state go on like this.
    """

    topic: str = ""
    epoch: int = NO_EPOCH
    shift: int = 0
    floor: int = 0
    gaps_before: int = 0
    acceptances: int = 0


@dataclass(frozen=True)
class LogView:
    """A log as it is now, in its own offsets. `epoch_end` is where the leader epoch of the mark ended in it."""

    topic: str
    begin: int
    end: int
    epoch_end: int | None = None


class FaultKind(StrEnum):
    GONE = "gone"  # there is no such topic or partition
    ANOTHER = "another"  # the topic was deleted and made again
    CUT = "cut"  # the log lost records that were read before
    GAP = "gap"  # records inside the log are missing
    PARTITIONS = "partitions"  # the topic has another number of partitions


@dataclass(frozen=True)
class LogFault:
    """Why a partition cannot be read on, and the offset of the log at which an operator may let it go on."""

    kind: FaultKind
    what: str
    read_on: int = 0

    @classmethod
    def of_partitions(cls, wanted: int) -> "LogFault":
        what = f"the topic no longer has {wanted} partitions: reports in others are not counted, so no period is closed"
        return cls(FaultKind.PARTITIONS, what)


def compare(mark: Mark, next_offset: int, view: LogView) -> LogFault | None:
    """What is wrong with a log, for a state that has read it up to `next_offset` (of the state). None if nothing is.

    >>> compare(Mark("a", 3), 100, LogView("a", 0, 100, epoch_end=100))
    >>> compare(Mark("a", 3), 100, LogView("b", 0, 5)).kind
    <FaultKind.ANOTHER: 'another'>
    >>> compare(Mark("a", 3), 100, LogView("a", 0, 90, epoch_end=90)).read_on
    90
    >>> compare(Mark("a", 3), 100, LogView("a", 0, 140, epoch_end=90)).what  # it has grown again
    'records from offset 90 to 99 were replaced by others after they were read'
    """
    read_to = next_offset - mark.shift
    if mark.topic and mark.topic != view.topic:
        return LogFault(
            FaultKind.ANOTHER,
            f"the topic was deleted and made again: the state contains topic {mark.topic} up to offset {read_to}, and "
            f"this is {view.topic}, which has offsets {view.begin} to {view.end - 1}",
            view.begin,
        )
    if view.end < read_to:
        what = f"the log ends at offset {view.end}, although it was read up to offset {read_to}: its end was cut off"
        return LogFault(FaultKind.CUT, what, view.end)
    if view.epoch_end is not None and view.epoch_end < read_to:
        what = f"records from offset {view.epoch_end} to {read_to - 1} were replaced by others after they were read"
        return LogFault(FaultKind.CUT, what, view.epoch_end)
    return None


@dataclass(frozen=True)
class Acceptance:
    """An operator lets a partition go on with the log of this mark; at most `lost` reports of each survey are lost.

    It is a state record of its own, applied by every recovery of a state that does not contain it.
    """

    mark: Mark
    lost: int

    def encode(self) -> bytes:
        return pack({"mark": asdict(self.mark), "lost": self.lost})

    @staticmethod
    def decode(data: bytes) -> "Acceptance":
        head, _ = unpack(data)
        return Acceptance(Mark(**head["mark"]), head["lost"])

    @classmethod
    def of(cls, mark: Mark, next_offset: int, fault: LogFault, view: LogView, lost: int) -> "Acceptance":
        """Go on after a fault: with the log as it is now, from where the fault says, and over gaps that it has now."""
        acceptances = mark.acceptances + 1
        if fault.kind is FaultKind.GAP:
            gaps_before = view.end + mark.shift
            return cls(Mark(mark.topic, mark.epoch, mark.shift, mark.floor, gaps_before, acceptances), lost)
        shift = next_offset - fault.read_on
        return cls(Mark(view.topic, NO_EPOCH, shift, next_offset, 0, acceptances), lost)


class Why(StrEnum):
    MARKER = "marker"  # the broker's own record that ends a transaction
    TOO_LARGE = "too-large"  # a batch that takes more memory than is allowed
    UNDECODABLE = "undecodable"  # a batch whose records cannot be read
    ABSENT = "absent"  # the log has no record there: it was compacted, or damaged


@dataclass(frozen=True)
class Skipped:
    """The offsets from `first` to `last` of a log, and why there is no record to apply."""

    first: int
    last: int
    why: Why
    epoch: int = NO_EPOCH


class Loss(NamedTuple):
    """At most so many reports are lost, of the periods from the first to the last together."""

    first: int
    last: int
    reports: int

    @property
    def periods(self) -> range:
        return range(self.first, self.last + 1)


def added(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Losses of the same periods as one, in order.

    >>> added([Loss(1, 3, 5), Loss(0, 0, 2), Loss(1, 3, 4)])
    (Loss(first=0, last=0, reports=2), Loss(first=1, last=3, reports=9))
    """
    sums = Counter[tuple[int, int]]()
    for first, last, reports in losses:
        sums[first, last] += reports
    return tuple(Loss(*periods, reports) for periods, reports in sorted(sums.items()))


def since(losses: Iterable[Loss], period: int) -> list[Loss]:
    """The losses that may concern this period or a later one."""
    return [loss for loss in losses if loss.last >= period]
