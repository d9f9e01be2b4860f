"""How many reports are lost at most: in some periods together, because it is not known in which of them they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Loss(NamedTuple):
    """At most so many reports are lost, of the periods from the first to the last together."""

    first: int
    last: int
    reports: int

    @property
    def periods(self) -> range:
        return range(self.first, self.last + 1)


def added(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Losses of the same periods as one, in order.

    >>> added([Loss(1, 3, 5), Loss(0, 0, 2), Loss(1, 3, 4)])
    (Loss(first=0, last=0, reports=2), Loss(first=1, last=3, reports=9))
    """
    sums = Counter[tuple[int, int]]()
    for first, last, reports in losses:
        sums[first, last] += reports
    return tuple(Loss(*periods, reports) for periods, reports in sorted(sums.items()))


def total(losses: Iterable[Loss]) -> int:
    return sum(loss.reports for loss in losses)


def since(losses: Iterable[Loss], period: int) -> list[Loss]:
    """The losses that may concern this period or a later one."""
    return [loss for loss in losses if loss.last >= period]
