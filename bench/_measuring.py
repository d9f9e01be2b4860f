"""What a benchmark returns, and how it measures.

Pieces of work are measured in turns: what slows this machine down for a while slows all of them down.
"""

import gc
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings


@dataclass
class Table:
    """Figures to print: rows of text under columns, remarks, and which figures were not reached."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def row(self, *cells: str) -> None:
        self.rows.append(cells)


@contextmanager
def broker() -> Iterator[tuple[KafkaSettings, Path]]:
    """How to reach a Kafka broker of its own, and a directory that is removed with it."""
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-") as name:
        server = KafkaBroker(Path(name) / "kafka").start()
        try:
            yield KafkaSettings(bootstrap=server.bootstrap), Path(name)
        finally:
            server.stop()


def own_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this process for a work, without collections of garbage: other programs do not count."""
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


def child_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of all processes that a work starts and ends."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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

    def times(self, one: int, other: int) -> "Figure":
        """How many times what one work cost the other one did: the median over turns, in which speed hardly changed.

        The works should take about as long: a short one is more often done in a moment in which the machine is fast.

        >>> Goes(((1.0, 2.0), (2.0, 4.0), (2.0, 9.0))).times(0, 1)
        Figure(value=2.0, low=2.0, high=4.5)
        """
        each = [turn[other] / turn[one] for turn in self.turns]
        return Figure(median(each), min(each), max(each))

    def figure(self, of: Callable[[Sequence[float]], float]) -> "Figure":
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
