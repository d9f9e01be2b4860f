"""What counting a partition and merging one have in common: a state made by reading a log in order.

A reader is recovered from state records of any age: `next_offset` is where to read on, which may be before what its
position contains. It is given the records of its log in order, and returns what to write: the next state, and messages.
What the position contains, and what it sends out, is skipped when the log is read again from an earlier place.

What goes wrong with one survey quarantines that survey. A reader that fails is of no use any more: one that is
recovered goes on with the others.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from protocols.errors import LogError
from stream_app.log.flushes import Flush, Output, Write, state_key
from stream_app.log.marks import Mark, Skipped, Why
from stream_app.log.recovery import LogPosition, Quarantine, StateRecords, is_of_one_survey


class LogReader(ABC):
    """Reads on with a recovered state.

    `missing` is what the log no longer has although the state lacks it, and is empty if nothing is missing. `failed`
    are the surveys that are quarantined since it was recovered; `failing` has the one that made this reader fail.
    `NOTHING_LACKS` are the reasons for skipping offsets after which nothing is lacking. Subclasses have a method that
    applies records.
    """

    STATE: ClassVar[str]  # what the keys of its state records begin with
    POSITION: ClassVar[type[LogPosition]]
    NOTHING_LACKS: ClassVar[frozenset[Why]] = frozenset({Why.MARKER})
    PLAIN: ClassVar[str]  # what its topic must be

    def __init__(self, partition: int, recovered: StateRecords[Any], start: int, missing: str) -> None:
        self.partition = partition
        self.missing = missing
        self.failed = recovered.failed
        self.failing: dict[str, Exception] = {}
        self.passed_over: Counter[str] = Counter()  # records by survey, since this reader was made
        self._position: LogPosition = recovered.position
        self._read = start
        self._contained: int = recovered.position.offset
        self._outputs: list[Output] = []
        self._deletions = recovered.stale
        self._saved_position = b""  # as this reader wrote it

    @property
    def next_offset(self) -> int:
        """The offset to read on from."""
        return self._read + 1

    @property
    def mark(self) -> Mark:
        return self._position.mark

    @property
    def quarantines(self) -> Mapping[str, Quarantine]:
        """The surveys that are quarantined."""
        return {survey: quarantine for survey, quarantine in self._position.quarantines.items() if quarantine.why}

    def adopt(self, topic: str) -> None:
        """Remember the id of the topic, if none is known yet."""
        if not self.mark.topic:
            self._position.mark = replace(self.mark, topic=topic)

    def may_skip(self, skipped: Skipped) -> bool:
        """Whether to go on after these offsets: not where something is lacking that no operator has given up."""
        return skipped.why in self.NOTHING_LACKS or skipped.last < self.mark.gaps_before

    @abstractmethod
    def flush(self, provisional: bool = True, everything: bool = False, /) -> Flush:
        """What is to be written now; with `provisional`, results that are not final as well.

        What recovery can find in the log may wait for later flushes, unless `everything` is wanted.
        """

    @property
    def is_pressing(self) -> bool:
        """Whether there is something to write that others wait for."""
        return bool(self._outputs or self._deletions)

    @contextmanager
    def _caring_for(self, survey: str) -> Iterator[None]:
        """Note what fails inside, if it concerns the survey alone."""
        try:
            yield
        except Exception as error:
            if is_of_one_survey(survey, error):
                self.failing[survey] = error
            raise

    def position_refused(self, flush: Flush) -> None:
        """All of a flush was written but its position, and what comes after it.

        It is as if a crash had come before the position, so the state can be recovered; a later position replaces
        this one. What is not needed after the position stays until one is written.
        """
        self._deletions = [*(item for item in flush.stages[-1] if isinstance(item, Write)), *self._deletions]
        self._saved_position = b""

    def skip(self, skipped: Skipped) -> Skipped | None:
        """Go on after offsets without a record. Returns those of them that were not passed before."""
        if skipped.last < self.next_offset:
            return None
        left = replace(skipped, first=max(skipped.first, self.next_offset))
        self._is_next(left.first if self.may_skip(left) else left.last + 1)
        self._advance_to(left.last, left.epoch)
        return left

    def _is_next(self, offset: int) -> bool:
        """Whether a record is the one to apply now; not if it was applied before. A missing one is an error."""
        if offset > self.next_offset:
            gone = f"partition {self.partition} goes from offset {self._read} to {offset}: records are missing"
            raise LogError(gone, self.PLAIN)
        return offset == self.next_offset

    def _advance_to(self, offset: int, epoch: int) -> None:
        """Note that everything through an offset is applied. A leader epoch of what was read again is not news."""
        self._read = offset
        if offset > self._contained and epoch != self.mark.epoch:
            self._position.mark = replace(self.mark, epoch=epoch)

    def _flush(
        self,
        first: Iterable[Write],
        second: Iterable[Write],
        pieces: Iterable[Output],
        last: Iterable[Output],
        third: Iterable[Write] = (),
    ) -> Flush:
        """All there is to write, in order: state in two stages, messages (pieces of them first), position, deletions.

        State that comes `third` is written with the position, which is written only if one of both changed.
        """
        outputs, self._outputs = [*self._outputs, *last], []
        deletions, self._deletions = self._deletions, []
        self._position.offset = max(self._contained, self._read)
        position = self._position.encode()
        changed = list(third)
        if changed or position != self._saved_position:
            changed.append(Write(state_key(self.STATE, self.partition, "position"), position))
            self._saved_position = position
        stages = (first, second, pieces, outputs, changed, deletions)
        return Flush(self._position.offset, tuple(tuple(stage) for stage in stages))
