"""Pieces of work that are measured in turns: what slows this machine down for a while slows all of them down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple


class Goes(NamedTuple):
    """What each piece of work cost, in each turn.

    >>> goes = Goes(((2.0, 4.0), (1.0, 2.0), (3.0, 5.0)))
    >>> goes.least
    (1.0, 2.0)
    """

    turns: tuple[tuple[float, ...], ...]

    @property
    def least(self) -> tuple[float, ...]:
        """Other programs only add to a cost: the least is nearest to what the work itself costs."""
        return tuple(map(min, zip(*self.turns, strict=True)))

    def times(self, one: int, other: int) -> Figure:
        """How many times what one work cost the other one did: the median over turns, in which speed hardly changed.

        The works should take about as long: a short one is more often done in a moment in which the machine is fast.

        >>> Goes(((1.0, 2.0), (2.0, 4.0), (2.0, 9.0))).times(0, 1)
        Figure(value=2.0, low=2.0, high=4.5)
        """
        each = [turn[other] / turn[one] for turn in self.turns]
        return Figure(median(each), min(each), max(each))

    def figure(self, of: Callable[[Sequence[float]], float]) -> Figure:
        """A figure of the least costs, and how far it depends on a single turn.

        >>> Goes(((1.0, 3.0), (1.0, 2.0), (1.0, 2.0))).figure(lambda costs: costs[1] / costs[0])
        Figure(value=2.0, low=2.0, high=2.0)
        """
        others = [Goes(self.turns[:turn] + self.turns[turn + 1 :]) for turn in range(len(self.turns))]
        each = [of(some.least) for some in others]
        return Figure(of(self.least), min(each), max(each))


class Figure(NamedTuple):
    """A figure, and the lowest and highest that it could have been: in any one turn, or without any one."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def in_turns(times: int, *works: Callable[[], float]) -> Goes:
    """What each work says it cost, so many times. Every second turn goes backwards: what grows steadily cancels out.

    >>> said = []
    >>> in_turns(2, lambda: said.append("a") or 1, lambda: said.append("b") or 2), said
    (Goes(turns=((1, 2), (1, 2))), ['a', 'b', 'b', 'a'])
    """
    turns = []
    for turn in range(times):
        step = -1 if turn % 2 else 1
        turns.append(tuple([work() for work in works[::step]][::step]))
    return Goes(tuple(turns))
