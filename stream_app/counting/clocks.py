"""How far a survey is closed, as a function of the place in the log.

Lateness depends on the log alone. When a part of the log is read again, a record must be judged by the clock
as it was at that offset, so the last few moves of the clock are kept with their offsets. A report is accepted for the
`ahead` periods after the last closed one: moves from before those periods can no longer matter, and are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER = -1  # nothing is closed yet


@dataclass
class SurveyClock:
    """The moves of one survey's clock in one partition: (offset of the clock record, closed through).

    >>> clock = SurveyClock()
    >>> clock.move(10, 0, ahead=2), clock.move(20, 0, ahead=2), clock.move(30, 1, ahead=2)
    (True, False, True)
    >>> clock.through, clock.through_before(30), clock.through_before(31)
    (1, 0, 1)
    """

    moves: list[tuple[int, int]] = field(default_factory=list)

    @property
    def through(self) -> int:
        return self.moves[-1][1] if self.moves else NEVER

    def through_before(self, offset: int) -> int:
        """The last period that was closed before the record at `offset`."""
        return next((through for at, through in reversed(self.moves) if at < offset), NEVER)

    def move(self, offset: int, through: int, ahead: int) -> bool:
        """Close the survey through a period; False if it was closed that far already."""
        if through <= self.through:
            return False
        self.moves = [move for move in self.moves if move[1] > through - ahead]
        self.moves.append((offset, through))
        return True
