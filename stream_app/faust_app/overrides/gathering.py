"""How long to wait for more after few records: to wake up costs more than to count a report.

An idle worker learns of a record at once, and what follows from it, like a first result, is read soon after. While
records go on trickling, more and more of them are taken together.

>>> gathering = Gathering()
>>> [gathering.after(few=True) for _ in range(5)]
[0.125, 0.25, 0.5, 1.0, 1.0]
>>> gathering.after(few=False), gathering.after(few=True)
(0.0, 0.125)
"""

from __future__ import annotations

FIRST_SECONDS, MOST_SECONDS = 0.125, 1.0
FEW_BYTES = 64 << 10
"""Up to how many bytes are few."""


class Gathering:
    """The waits of one consumer."""

    def __init__(self) -> None:
        self._next = FIRST_SECONDS

    def after(self, few: bool) -> float:
        """Seconds to wait after a few records; none after many, or if there was no record."""
        waited, self._next = self._next, min(2 * self._next, MOST_SECONDS)
        if few:
            return waited
        self._next = FIRST_SECONDS
        return 0.0
