"""What a benchmark returns, and how it measures."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


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


def best_of(
    times: int, work: Callable[[], object], clock: Callable[[], float] = time.perf_counter, warm: bool = True
) -> float:
    """Seconds of the fastest of several goes, after one to warm up that does not count.

    Work that keeps one core busy and waits for nothing is best measured by `time.process_time`: other programs then
    do not count.
    """
    if warm:
        work()
    found = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(times):
            start = clock()
            work()
            found.append(clock() - start)
    finally:
        if collecting:
            gc.enable()
    return min(found)
