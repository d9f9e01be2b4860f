"""Sufficient statistics: how many reports of each gap support each value (PROTOCOLS 1 and 7).

Reports that only show a presence (one_in) are counted by gap like the answers to an attribute without values, under the
name `PRESENCE_ONLY`. So `n` of an attribute counts its answers, and all reports are the sum over `Scheme.kinds`.

Of answers with a fresh hash (olh) the supports are counted from many at once (`gathered`); the merge has them all.

Nothing in here is debiased, so everything can be added: across partitions, workers and periods. Only gaps that occur
take memory, however long the horizon is. Reports are also counted by width, how many values they support: by that
forged ones are noticed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Column, Whole
from protocols.mechanisms import Encoding, FreshHash
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.wire import Frame
from stream_app.counting.gathered import Gathered
from stream_app.counting.tables.gap_rows import look_up
from stream_app.log.codec import Array


@dataclass(frozen=True, eq=False)
class Statistics:
    """One attribute's counts by gap: `n[row]` reports have the gap `gaps[row]`, and `N[row, value]` support a value.

    Of all gaps together: `widths[c]` reports support c values; empty where every report supports one.
    `waiting` are answers whose supports are not in N yet, of which `waits[row]` have the gap of a row.
    """

    gaps: NDArray[np.uint16]  # ascending
    n: Whole
    N: Whole
    widths: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    waits: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    waiting: Column = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    @property
    def total(self) -> int:
        return int(self.n.sum())

    @property
    def supports(self) -> NDArray[np.int64]:
        """Over all gaps: how many reports support each value."""
        return np.asarray(self.N.sum(axis=0), dtype=np.int64)

    @property
    def arrays(self) -> list[Array]:
        return [self.gaps, self.n, self.N, self.widths]


Counts = Mapping[str, Statistics]  # by attribute, and of presence-only reports


def encodings(scheme: Scheme) -> dict[str, Encoding | None]:
    """What is counted in a survey: answers in the encoding of each question, and presence-only reports in none."""
    asked: dict[str, Encoding | None] = {q.name: q.mechanism.encoding for q in scheme.questions}
    return {**asked, **({PRESENCE_ONLY: None} if scheme.takes_turns else {})}


def add(parts: Sequence[Statistics], encoding: Encoding | None) -> Statistics:
    """The sum of some statistics of one attribute. No answer waits any longer."""
    gaps = np.unique(np.concatenate([part.gaps for part in parts] or [np.zeros(0, dtype=np.uint16)]))
    k, cells = (encoding.k, encoding.widths) if encoding else (0, 0)
    n, N = np.zeros(len(gaps), dtype=np.int64), np.zeros((len(gaps), k), dtype=np.int64)
    widths = np.zeros(cells, dtype=np.int64)
    waiting: list[list[Column]] = [[] for _ in gaps]
    for part in parts:
        rows = np.searchsorted(gaps, part.gaps)
        n[rows] += part.n
        if part.N.shape[1]:
            N[rows] += part.N
        widths += part.widths
        for row, answers in zip(rows, np.split(part.waiting, np.cumsum(part.waits)[:-1]), strict=False):
            waiting[row].append(answers)
    for row, found in enumerate(waiting):
        if isinstance(encoding, FreshHash) and any(len(answers) for answers in found):
            N[row] += encoding.supports(np.concatenate(found))
    return Statistics(gaps, n, N, widths)


def add_counts(parts: Iterable[Counts], scheme: Scheme) -> Counts:
    """The sum of some counts, attribute by attribute."""
    listed = list(parts)
    return {name: add([part[name] for part in listed], encoding) for name, encoding in encodings(scheme).items()}


def arrays_of(counts: Counts) -> list[Array]:
    """Four arrays of each attribute; six where answers of any of them wait."""
    waits = any(len(statistics.waits) for statistics in counts.values())
    return [a for found in counts.values() for a in [*found.arrays, *((found.waits, found.waiting) if waits else ())]]


def from_arrays(names: list[str], arrays: list[Array]) -> Counts:
    each = len(arrays) // len(names)
    return {name: Statistics(*arrays[each * place : each * (place + 1)]) for place, name in enumerate(names)}


class PeriodCounts:
    """The growing counts of one period."""

    def __init__(self, scheme: Scheme, counts: Counts | None = None) -> None:
        self._counters = {
            name: _Counter(encoding, scheme.visits.cells, counts[name] if counts else None)
            for name, encoding in encodings(scheme).items()
        }

    def count(self, frame: Frame) -> None:
        if not frame.answers:
            self._counters[PRESENCE_ONLY].count(frame.gaps)
        for name, answers in frame.answers.items():
            self._counters[name].count(frame.gaps, answers)

    @property
    def nbytes(self) -> int:
        """How much they take as a record."""
        return sum(counter.nbytes for counter in self._counters.values())

    def snapshot(self) -> Counts:
        return {name: counter.snapshot() for name, counter in self._counters.items()}


class _Counter:
    """N and n of one attribute, a row for each gap in the order in which gaps first occurred; and its widths."""

    def __init__(self, encoding: Encoding | None, cells: Whole, initial: Statistics | None) -> None:
        self._encoding = encoding
        self._gathered = Gathered(encoding) if isinstance(encoding, FreshHash) else None
        self._rows = np.full(cells[-1] + 1, -1, dtype=np.int32)  # by gap
        self._gaps: list[int] = []
        self._n = np.zeros(0, dtype=np.int64)
        self._N = np.zeros((0, 0 if encoding is None or self._gathered else encoding.k), dtype=np.int64)
        self._widths = np.zeros(encoding.widths if encoding else 0, dtype=np.int64)
        if initial is not None:
            self._add_gaps(initial.gaps)
            self._n[: len(initial.gaps)] = initial.n
            if self._gathered is not None:
                self._gathered.restore(initial.N, initial.waits, initial.waiting)
            else:
                self._N[: len(initial.gaps)] = initial.N
            self._widths += initial.widths

    def count(self, gaps: Column, answers: Column | None = None) -> None:
        rows, n = np.empty(len(gaps), dtype=np.int32), np.zeros(len(self._gaps), dtype=np.int64)
        if not look_up(gaps, self._rows, rows, n):
            self._add_gaps(np.unique(gaps[self._rows[gaps] < 0]))
            self.count(gaps, answers)
            return
        count = len(n)
        self._n[:count] += n
        if answers is not None and self._gathered is not None:
            self._gathered.add(rows, answers, count)
        elif answers is not None and self._encoding is not None:
            self._N[:count] += self._encoding.count(answers, rows, count)
            if len(self._widths):
                self._widths += self._encoding.count_widths(answers)

    @property
    def nbytes(self) -> int:
        gathered = 0 if self._gathered is None else self._gathered.nbytes
        return len(self._gaps) * (2 + 8 + 8 * self._N.shape[1]) + self._widths.nbytes + gathered

    def snapshot(self) -> Statistics:
        gaps = np.array(self._gaps, dtype=np.uint16)
        order = np.argsort(gaps)
        if self._gathered is not None:
            settled, waits, waiting = self._gathered.snapshot(order)
            return Statistics(gaps[order], self._n[order], settled, self._widths.copy(), waits, waiting)
        return Statistics(gaps[order], self._n[order], self._N[order], self._widths.copy())

    def _add_gaps(self, gaps: Column) -> None:
        """Give gaps that occur for the first time a row. The arrays double, so that adding many gaps is cheap."""
        self._rows[gaps] = np.arange(len(self._gaps), len(self._gaps) + len(gaps))
        self._gaps += gaps.tolist()
        lacking = len(self._gaps) - len(self._n)
        if lacking > 0:
            lacking = max(lacking, min(len(self._n), len(self._rows) - 1 - len(self._n)))
            self._n = np.pad(self._n, (0, lacking))
            self._N = np.pad(self._N, ((0, lacking), (0, 0)))
