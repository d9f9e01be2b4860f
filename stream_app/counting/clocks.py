"""How far a survey is closed, and since which place in the log.

Lateness depends on the log alone. When a part of the log is read again, a record must be judged as when it was first
read. The last move of the clock is enough for that: what came after it is judged by it; what came before it can only
belong to a period that is still open, and an open period knows the offset that opened it.
"""

from __future__ import annotations

from dataclasses import dataclass

NEVER = -1  # nothing is closed yet


@dataclass
class SurveyClock:
    """The last move of one survey's clock in one partition: the offset of the clock record, and closed through what.

    >>> clock = SurveyClock()
    >>> clock.move(10, 0), clock.move(20, 0), clock.move(30, 1)
    (True, False, True)
    >>> clock
    SurveyClock(offset=30, through=1)
    """

    offset: int = -1
    through: int = NEVER

    def move(self, offset: int, through: int) -> bool:
        """Close the survey through a period; False if it was closed that far already."""
        if through <= self.through:
            return False
        self.offset, self.through = offset, through
        return True
