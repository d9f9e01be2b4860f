"""How often a partition is flushed: what others wait for soon, and everything else when it is worth the cost."""

from __future__ import annotations

import time
from collections.abc import Callable

from stream_app.log.codec import RECORD_BYTES, RECORD_COST

FLUSH_EVERY_SECONDS = 1.0
"""How long what others wait for may wait to be written: messages, results, and a good number of reports."""
WORTH_BYTES = 128 * RECORD_COST
"""How much must have been read to be worth a flush of its own, if nobody waits for it ..."""
QUIET_SECONDS = 5.0
"""... and how long less than that may wait. Until then it is counted in memory, and in the log."""
FLUSH_BYTES = RECORD_BYTES // 4
"""Write as soon as this much was read ..."""
PAUSE_BYTES = RECORD_BYTES // 2
"""... and pause reading if this much waits for an earlier flush. Tokens are part of it, so they fit in a record."""
PROVISIONAL_SECONDS = 1.0
"""How long to wait at least between results that are not final ..."""
PROVISIONAL_SHARE = 0.05
"""... and which share of the time making them may take."""


class Pace:
    """The pace of one partition. `now` gives seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._unwritten = 0
        self._flushed_at = now()
        self._provisional_due = now()

    def note_read(self, size: int) -> None:
        """Records were read: their bytes, and `RECORD_COST` for each."""
        self._unwritten += size

    @property
    def is_full(self) -> bool:
        """Whether to flush at once."""
        return self._unwritten >= FLUSH_BYTES

    @property
    def is_too_full(self) -> bool:
        """Whether to read nothing more before the next flush."""
        return self._unwritten >= PAUSE_BYTES

    def is_due(self, pressing: bool) -> bool:
        """Whether to flush, asked every second; `pressing` if others wait for what is to be written."""
        return pressing or self._unwritten >= WORTH_BYTES or self._now() - self._flushed_at >= QUIET_SECONDS

    @property
    def is_provisional(self) -> bool:
        """Whether the next flush has results that are not final."""
        return self._now() >= self._provisional_due

    def flushed(self, provisional: bool, seconds: float) -> None:
        """A flush was made, which took so long."""
        self._unwritten = 0
        self._flushed_at = self._now()
        if provisional:
            self._provisional_due = self._now() + max(PROVISIONAL_SECONDS, seconds / PROVISIONAL_SHARE)
