"""The unique devices of calendar units: sums of the reports that have the flag of a unit (PROTOCOLS 7).

Sums grow period by period, and can be published while the unit is open: they are exact for the periods that are closed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import add
from typing import Any

import numpy as np

from analytics.windows.agreement import project
from protocols.arrays import Whole
from protocols.survey import BITS, CalendarVisits, Unit


@dataclass(frozen=True, eq=False)
class UnitSum:
    """The first reports of a unit through a period: by question, so many visitors answered it, and so many new ones.

    `visits` and `most` are all released reports of its periods, and those of the period that has most. `cells` are how
    many cells with noise were added up for the visitors and for the new ones of each question, `agreed` both numbers
    for all questions, made to agree. `late` and `refused` rows are not counted.
    """

    first: int
    n: Mapping[str, int] = field(default_factory=dict)
    new: Mapping[str, int] = field(default_factory=dict)
    N: Mapping[str, Whole] = field(default_factory=dict)
    visits: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    cells: tuple[int, int] = (0, 0)
    agreed: tuple[int, int] | None = None
    late: int = 0
    refused: int = 0

    def add(self, other: "UnitSum") -> "UnitSum":
        """The sum of two runs of periods of the same unit, of which this is the earlier one."""

        def joined(name: str, op: Any = add) -> dict[str, Any]:
            ours, theirs = getattr(self, name), getattr(other, name)
            return {key: op(ours.get(key, 0), theirs.get(key, 0)) for key in {**ours, **theirs}}

        return UnitSum(
            self.first,
            **{name: joined(name) for name in ("n", "new", "N", "visits")},
            most=joined("most", max),
            cells=_pair(self.cells, other.cells),
            agreed=other.agreed and _pair(self.agreed or (0, 0), other.agreed),
            late=self.late + other.late,
            refused=self.refused + other.refused,
        )

    def protected(self, kinds: tuple[str, ...], minimum: int) -> "UnitSum | None":
        """What may be published once the unit is over, where numbers of fewer reports are not; None: nothing.

        The visitors of later periods than the first, and the reports of those who came again, are differences of
        published numbers: both must be enough. So must new and returning visitors, or neither is published.
        """
        if any(
            self.n.get(kind, 0) - self.most.get(kind, 0) < minimum
            or self.visits.get(kind, 0) - self.n.get(kind, 0) < minimum
            for kind in kinds
        ):
            return None
        parts = [part for kind in kinds for part in (self.new.get(kind, 0), self.n[kind] - self.new.get(kind, 0))]
        late = self.late - self.late % minimum
        return UnitSum(self.first, self.n, self.new if min(parts) >= minimum else {}, self.N, late=late)

    @property
    def head(self) -> dict[str, Any]:
        """All but N, for JSON."""
        return {name: part for name, part in vars(self).items() if name != "N"}


UnitSums = Mapping[Unit, UnitSum]


def _pair(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


def flagged(axis: Whole, unit: Unit) -> Whole:
    """The rows of counts whose flags have a unit."""
    return np.flatnonzero(axis & BITS[unit])


def agree_flags(noised: Whole, total: int, visits: CalendarVisits, period: int, before: UnitSums) -> Whole:
    """Cells of a period, by flags, that some visitors could have caused: the nearest to the noised ones, as a rule.

    None is negative, those that cannot occur are 0, and who is not the first in a unit was there before: there cannot
    be more of them than the unit has visitors so far. The possible flags contain each other, so what is too many moves
    to the next flags.
    """
    chain = sorted(visits.possible(period), key=lambda flags: flags.bit_count())
    places = np.searchsorted(visits.cells, chain)
    cells = np.zeros(len(noised), dtype=np.int64)
    cells[places] = project(noised[places], np.full(len(places), total), total)
    for flags, place, following in zip(chain, places, places[1:], strict=False):
        seen = [before[unit].agreed for unit in visits.units if not flags & BITS[unit] and unit in before]
        most = min((agreed[0] for agreed in seen if agreed is not None), default=total)
        below = int(cells[places[: list(places).index(place)]].sum())
        excess = max(0, below + int(cells[place]) - most)
        cells[place] -= excess
        cells[following] += excess
    return cells
