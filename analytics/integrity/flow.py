"""Gap flow: a device reports once in a period, so each report has at most one successor.

Reports of period s + g with the gap g say that their device last reported in period s. There cannot be more of them,
for all g together, than there were reports in s: counted, late or refused. This is exact; no chance is involved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from pydantic import Field

from analytics.columns import ResultModel
from protocols.arrays import Whole


@dataclass(frozen=True, eq=False)
class Closed:
    """The reports of a closed period by gap, and those that do not count."""

    gaps: Whole  # in any order; several kinds of reports may have the same
    n: Whole
    refused: int = 0  # rows of this period, without repeats
    late: Mapping[int, int] = field(default_factory=dict)  # by period: late rows that came before this one was closed


class Flow(ResultModel):
    """How many reports say that their device last reported in a period, against those that there were."""

    period: int = Field(
        description="of the periods that windows include, the one where they are nearest; of calendar units the first "
        "period of the unit"
    )
    claimed: int = Field(
        description="later reports whose gap says that their device last reported in that period; of calendar units, "
        "reports whose flags say that their device reported earlier in the unit"
    )
    reported: int = Field(
        description="reports of that period: counted, late and refused; of calendar units, devices that reported "
        "earlier in the unit, and late and refused reports"
    )

    @property
    def broken(self) -> bool:
        """Whether some gaps must be false, or reports were lost."""
        return self.claimed > self.reported


def flow_of(closed: Mapping[int, Closed], horizon: int) -> Flow | None:
    """The period with the least room for false gaps, of consecutive closed periods; None if none has a successor.

    >>> closed = {s: Closed(np.array([1, 3]), np.array(n)) for s, n in enumerate([[0, 50], [40, 5], [46, 2]])}
    >>> flow_of(closed, horizon=3)
    Flow(period=1, claimed=46, reported=45)
    """
    first, last = min(closed), max(closed)
    if first == last or horizon == 1:
        return None
    claimed = np.zeros(last - first + 1, dtype=np.int64)
    reported = np.array([closed[s].n.sum() + closed[s].refused for s in range(first, last + 1)], dtype=np.int64)
    for s in range(first, last + 1):
        gaps = closed[s].gaps.astype(np.int64)
        known = (gaps < horizon) & (gaps <= s - first)
        np.add.at(claimed, s - gaps[known] - first, closed[s].n[known])
        for late, rows in closed[s].late.items():
            if late >= first:
                reported[late - first] += rows
    place = int(np.argmin((reported - claimed)[:-1]))
    return Flow(period=first + place, claimed=int(claimed[place]), reported=int(reported[place]))
