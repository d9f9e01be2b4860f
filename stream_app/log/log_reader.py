"""What counting a partition and merging one have in common: a state made by reading a log in order.

A reader is recovered from state records of any age: `next_offset` is where to read on, which may be before what its
position contains. It is given the records of its log in order, and returns what to write: the next state, and messages.
What the position contains, and what it sends out, is skipped when the log is read again from an earlier place.

What goes wrong with one survey quarantines that survey (see `quarantines`), and the reader goes on with the others.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from protocols.errors import LogError
from stream_app.log.flushes import Flush, Output, Write
from stream_app.log.marks import Skipped, Why
from stream_app.log.quarantines import (
    NEVER_QUARANTINED,
    NOT_OF_ONE_SURVEY,
    Quarantine,
    Quarantines,
    SurveyFailed,
    survey_of,
)
from stream_app.log.recovery import LogPosition, Recovered

POSITION = 4
"""Which stage of a flush has the position, as its last record."""


class LogReader(ABC):
    """Reads on with a recovered state.

    `missing` is what the log no longer has although the state lacks it, and is empty if nothing is missing.
    `NOTHING_LACKS` are the reasons for skipping offsets after which nothing is lacking. Subclasses have a method that
    applies records.
    """

    STATE: ClassVar[str]  # what the keys of its state records begin with
    POSITION: ClassVar[type[LogPosition]]
    NOTHING_LACKS: ClassVar[frozenset[Why]] = frozenset({Why.MARKER})

    def __init__(self, recovered: Recovered[Any, Any]) -> None:
        position: LogPosition = recovered.position
        self.missing = recovered.missing
        self.failed = list(recovered.failed)  # news: whoever reads it takes it away
        self.passed_over: Counter[str] = Counter()  # records by survey, since this reader was made
        self._quarantines = position.quarantines
        self._flushed = self._before = position.encode()  # the positions of the last flush, and of the one before
        self.mark = position.mark
        self._read = recovered.start
        self._contained = position.offset
        self._outputs: list[Output] = []
        self._deletions = list(recovered.stale)
        self._saved_position = b""  # as this reader wrote it

    @property
    def next_offset(self) -> int:
        """The offset to read on from."""
        return self._read + 1

    @property
    def quarantines(self) -> Mapping[str, Quarantine]:
        """The surveys that are quarantined."""
        return {survey: quarantine for survey, quarantine in list(self._quarantines.items()) if quarantine.why}

    def adopt(self, topic: str) -> None:
        """Remember the id of the topic, if none is known yet."""
        if not self.mark.topic:
            self.mark = replace(self.mark, topic=topic)

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

    def _is_quarantined(self, survey: str) -> bool:
        return bool(self._quarantines.get(survey, NEVER_QUARANTINED).why)

    @contextmanager
    def _caring_for(self, survey: str) -> Iterator[None]:
        """What fails inside quarantines the survey. Too little memory is no fault of one survey, nor is one unnamed."""
        try:
            yield
        except NOT_OF_ONE_SURVEY:
            raise
        except Exception as error:
            if not survey:
                raise
            self._quarantine(survey, self._quarantines, error, self._flushed)

    def refused(self, flush: Flush, survey: str, error: Exception) -> Flush:
        """Quarantine a survey of which a record in the flush that is being written was refused.

        Its state is what the flush before left. Returns what is to be written instead: nothing of the survey.
        """
        before = self._before
        self._quarantine(survey, self.POSITION.decode(before).quarantines, error, before)
        stages = [tuple(item for item in stage if survey_of(item) != survey) for stage in flush.stages]
        if stages[POSITION]:
            *others, position = stages[POSITION]
            assert isinstance(position, Write) and position.value is not None
            self._flushed = self._saved_position = self._amended(position.value, survey, before)
            stages[POSITION] = (*others, Write(position.key, self._saved_position))
        return Flush(flush.offset, tuple(stages))

    def position_refused(self, flush: Flush) -> None:
        """All of a flush was written but its position, and what comes after it.

        It is as if a crash had come before the position, so the state can be recovered; a later position replaces
        this one. What is not needed after the position stays until one is written.
        """
        self._deletions = [*(item for item in flush.stages[-1] if isinstance(item, Write)), *self._deletions]
        self._saved_position = b""

    def _amended(self, record: bytes, survey: str, before: bytes) -> bytes:
        """A position record in which a survey is quarantined, and stands as in the record before."""
        position = self.POSITION.decode(record)
        position.restore(survey, self.POSITION.decode(before))
        position.quarantines[survey] = self._quarantines[survey]
        return position.encode()

    def _quarantine(self, survey: str, earlier: Quarantines, error: Exception, position: bytes) -> None:
        """Forget the survey in memory. Its state is what a flush left, and nothing more of it is written.

        `earlier` are quarantines before this one, `position` is the position record of that flush.
        """
        offset = self.POSITION.decode(position).offset
        quarantine = self._quarantines[survey] = earlier.get(survey, NEVER_QUARANTINED).again(offset, error)
        self._outputs = [output for output in self._outputs if survey_of(output) != survey]
        self._deletions = [write for write in self._deletions if survey_of(write) != survey]
        self.failed.append(SurveyFailed(survey, quarantine, error))
        self._forget(survey, position)

    @abstractmethod
    def _forget(self, survey: str, position: bytes) -> None:
        """Set what is known of a survey back to what this position record has, and keep nothing of it in memory."""

    def _is_next(self, offset: int, log: str, advice: str) -> bool:
        """Whether a record is the one to apply now; not if it was applied before. A missing one is an error."""
        if offset > self.next_offset:
            raise LogError(f"{log} from offset {self._read} to {offset}: records are missing", advice)
        return offset == self.next_offset

    def _advance_to(self, offset: int, epoch: int) -> None:
        """Note that everything through an offset is applied. A leader epoch of what was read again is not news."""
        self._read = offset
        if offset > self._contained and epoch != self.mark.epoch:
            self.mark = replace(self.mark, epoch=epoch)

    def _flush(
        self,
        first: Iterable[Write],
        second: Iterable[Write],
        position: Sequence[Write],
        last: Iterable[Output],
        pieces: Iterable[Output] = (),
    ) -> Flush:
        """All there is to write, in order: state in two stages, messages (pieces of them first), position, deletions.

        The last record of `position` is the position itself, which is written only if it, or one before it, changed.
        """
        outputs, self._outputs = [*self._outputs, *last], []
        deletions, self._deletions = self._deletions, []
        changed = () if len(position) == 1 and position[0].value == self._saved_position else position
        self._saved_position = position[-1].value or b""
        self._before = self._flushed
        self._flushed = self._saved_position
        stages = (first, second, pieces, outputs, changed, deletions)
        return Flush(max(self._contained, self._read), tuple(tuple(stage) for stage in stages))
