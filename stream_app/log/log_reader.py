"""What the counter of a partition and the merge of one have in common: they read a log, and say what to write.

What the position contains, and what it sends out, is skipped when the log is read again from an earlier place.
"""

from __future__ import annotations

from collections.abc import Iterable

from protocols.errors import LogError
from stream_app.log.flushes import Flush, Output, Write


class LogReader:
    """Reads on after `start`, with a position that contains the log through `contained`."""

    def __init__(self, start: int, contained: int, stale: Iterable[Write], missing: str) -> None:
        self.missing = missing
        self._read = start
        self._contained = contained
        self._outputs: list[Output] = []
        self._deletions = list(stale)
        self._saved_position = b""

    @property
    def next_offset(self) -> int:
        return self._read + 1

    def _is_next(self, offset: int, log: str, advice: str) -> bool:
        """Whether a record is the one to apply now; not if it was applied before. A missing one is an error."""
        if offset > self.next_offset:
            raise LogError(f"{log} from offset {self._read} to {offset}: records are missing", advice)
        return offset == self.next_offset

    def _flush(self, first: Iterable[Write], second: Iterable[Write], position: Write, last: Iterable[Output]) -> Flush:
        """All there is to write, in order: the state, what goes out, the position if it has changed, what goes."""
        outputs, self._outputs = [*self._outputs, *last], []
        deletions, self._deletions = self._deletions, []
        changed = [] if position.value == self._saved_position else [position]
        self._saved_position = position.value or b""
        stages = (first, second, outputs, changed, deletions)
        return Flush(max(self._contained, self._read), tuple(tuple(stage) for stage in stages))
