"""What is not among the counts of a closed period."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stream_app.counting.partials import Part


@dataclass(frozen=True)
class NotCounted:
    """Rows that are not among the counts of a period: its own refused ones, and late ones that came before its end."""

    refused: int = 0
    late: Mapping[int, int] = field(default_factory=dict)  # by period

    @staticmethod
    def of(parts: Iterable[Part]) -> NotCounted:
        """The sum over partitions."""
        refused, late = 0, dict[int, int]()
        for part in parts:
            refused += part.refused
            for period, rows in part.late.items():
                late[period] = late.get(period, 0) + rows
        return NotCounted(refused, dict(sorted(late.items())))

    def rounded(self, minimum: int) -> NotCounted:
        """What may be published of it: each number rounded down to a multiple of the minimum."""
        late = {period: rounded(rows, minimum) for period, rows in self.late.items()}
        return NotCounted(rounded(self.refused, minimum), {period: rows for period, rows in late.items() if rows})


def rounded(reports: int, minimum: int) -> int:
    """A number of reports, rounded down to a multiple of the minimum.

    >>> rounded(119, 50), rounded(49, 50), rounded(49, 0)
    (100, 0, 49)
    """
    return reports - reports % minimum if minimum else reports


def at_most(reports: int, minimum: int) -> int:
    """An upper bound of a number of reports, rounded up to a multiple of the minimum.

    >>> at_most(101, 50), at_most(1, 50), at_most(49, 0)
    (150, 50, 49)
    """
    return reports + -reports % minimum if minimum else reports
