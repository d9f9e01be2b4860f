"""The merge state as records.

    merge/Q/position                          last offset, which log, {survey: the offset its record contains},
                                              {survey that is or was quarantined: its offset}
    merge/Q/survey/SURVEY                     its last offset, the status of the survey, {part: its offset}
    merge/Q/accepted                          what an operator has accepted: see `stream_app.log.marks.Acceptance`
    merge/Q/resumed/SURVEY                    that a survey goes on: see `stream_app.log.quarantines.resumption`
    merge/Q/part/SURVEY/PERIOD/PARTITION      the newest part of one partition, and its offset in the partials topic
    merge/Q/final/SURVEY/PERIOD               the bytes of a final, and the last period published before it

Q is the partition of the partials topic. A final is written before it is published, so that a republication has the
same bytes and headers.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from stream_app.counting.partials import Progress
from stream_app.counting.state import NEVER
from stream_app.log.codec import pack_position, unpack
from stream_app.log.marks import Loss, added
from stream_app.log.recovery import NOTHING, LogPosition

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
