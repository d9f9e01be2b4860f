"""Sufficient statistics: how many reports of each gap support each value (PROTOCOLS 1 and 7).

Reports that only show a presence (one_in) are counted by gap like the answers to an attribute without values, under the
name `PRESENCE_ONLY`. So `n` of an attribute counts its answers, and all reports are the sum over `Scheme.kinds`.

Of answers with a fresh hash (olh) the supports are counted from many at once (`gathered`); the merge has them all.

Nothing in here is debiased, so everything can be added: across partitions, workers and periods. Only gaps that occur
take memory, however long the horizon is. Reports are also counted by width, how many values they support: by that
forged ones are noticed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Column, Whole
from protocols.mechanisms import Encoding, FreshHash
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.wire import Frame
from stream_app.counting.gathered import Gathered
from stream_app.counting.tables.gap_rows import look_up
from stream_app.log.codec import COMMON, VERSION, Array


@dataclass(frozen=True, eq=False)
class Statistics:
    """One attribute's counts by gap: `n[row]` reports have the gap `gaps[row]`, and `N[row, value]` support a value.

    Where no window has answers of first reports, N has one row, of all gaps together: else the state would grow with
    the horizon. `widths[c]` reports of all gaps support c values; empty where every report supports one. `waiting` are
    answers whose supports are not in N yet, of which `waits[row]` belong to a row of N.
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


def add(parts: Sequence[Statistics], encoding: Encoding | None, by_visit: bool = True) -> Statistics:
    """The sum of some statistics of one attribute. No answer waits any longer.

    Supports are by gap or flags, or of all of them together; then parts of release 0.2 may still have them by gap.
    """
    gaps = np.unique(np.concatenate([part.gaps for part in parts] or [np.zeros(0, dtype=np.uint16)]))
    k, cells = (encoding.k, encoding.widths) if encoding else (0, 0)
    n = np.zeros(len(gaps), dtype=np.int64)
    N = np.zeros((len(gaps) if by_visit else 1, k), dtype=np.int64)
    widths = np.zeros(cells, dtype=np.int64)
    waiting: list[list[Column]] = [[] for _ in N]
    for part in parts:
        rows = np.searchsorted(gaps, part.gaps)
        n[rows] += part.n
        rows_of_supports = rows if by_visit else np.zeros(len(part.N), dtype=np.intp)
        if part.N.shape[1] and by_visit:
            N[rows] += part.N
        elif part.N.shape[1]:
            N[0] += part.supports
        widths += part.widths
        for row, answers in zip(rows_of_supports, np.split(part.waiting, np.cumsum(part.waits)[:-1]), strict=False):
            waiting[row].append(answers)
    for row, found in enumerate(waiting):
        if isinstance(encoding, FreshHash) and any(len(answers) for answers in found):
            N[row] += encoding.supports(np.concatenate(found))
    return Statistics(gaps, n, N, widths)


def add_counts(parts: Iterable[Counts], scheme: Scheme) -> Counts:
    """The sum of some counts, attribute by attribute."""
    listed = list(parts)
    by_visit = scheme.survey.counts_supports_by_visit
    return {
        name: add([part[name] for part in listed], encoding, by_visit) for name, encoding in encodings(scheme).items()
    }


def arrays_of(counts: Counts) -> list[Array]:
    """Four arrays of each attribute; six where answers of any of them wait."""
    waits = any(len(statistics.waits) for statistics in counts.values())
    return [a for found in counts.values() for a in [*found.arrays, *((found.waits, found.waiting) if waits else ())]]


def from_arrays(names: list[str], arrays: list[Array]) -> Counts:
    each = len(arrays) // len(names)
    return {name: Statistics(*arrays[each * place : each * (place + 1)]) for place, name in enumerate(names)}


def _together(found: Statistics, encoding: Encoding | None) -> Statistics:
    """Counts of release 0.2, which had supports by gap, with those of all gaps together. No answer waits."""
    summed = add([found], encoding, by_visit=False)
    if not isinstance(encoding, FreshHash):
        return summed
    nothing = np.zeros(0, dtype=encoding.answer.dtype)
    return replace(summed, waits=np.zeros(1, dtype=np.int64), waiting=nothing)


def version_of(counts: Counts) -> int:
    """The version of a record with these counts. Release 0.2 takes each row of supports for one of a gap."""
    by_gap = all(len(found.N) == len(found.gaps) for found in counts.values())
    return COMMON if by_gap else VERSION


class PeriodCounts:
    """The growing counts of one period."""

    def __init__(self, scheme: Scheme, counts: Counts | None = None) -> None:
        by_visit = scheme.survey.counts_supports_by_visit
        self._counters = {
            name: _Counter(encoding, scheme.visits.cells, by_visit, counts[name] if counts else None)
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
    """N and n of one attribute, a row for each gap in the order in which gaps first occurred; and its widths.

    Supports that are not counted `by_visit` have a single row.
    """

    def __init__(self, encoding: Encoding | None, cells: Whole, by_visit: bool, initial: Statistics | None) -> None:
        self._encoding = encoding
        self._by_visit = by_visit
        self._gathered = Gathered(encoding) if isinstance(encoding, FreshHash) else None
        self._rows = np.full(cells[-1] + 1, -1, dtype=np.int32)  # by gap
        self._gaps: list[int] = []
        self._n = np.zeros(0, dtype=np.int64)
        width = 0 if encoding is None or self._gathered else encoding.k
        self._N = np.zeros((0 if by_visit else 1, width), dtype=np.int64)
        self._widths = np.zeros(encoding.widths if encoding else 0, dtype=np.int64)
        if initial is not None:
            self._add_gaps(initial.gaps)
            self._n[: len(initial.gaps)] = initial.n
            if not by_visit and len(initial.N) != 1:
                initial = _together(initial, encoding)
            if self._gathered is not None:
                self._gathered.restore(initial.N, initial.waits, initial.waiting)
            else:
                self._N[: len(initial.N)] = initial.N
            self._widths += initial.widths

    def count(self, gaps: Column, answers: Column | None = None) -> None:
        rows, n = np.empty(len(gaps), dtype=np.int32), np.zeros(len(self._gaps), dtype=np.int64)
        if not look_up(gaps, self._rows, rows, n):
            self._add_gaps(np.unique(gaps[self._rows[gaps] < 0]))
            self.count(gaps, answers)
            return
        count = len(n)
        self._n[:count] += n
        if not self._by_visit:
            rows.fill(0)
            count = 1
        if answers is not None and self._gathered is not None:
            self._gathered.add(rows, answers, count)
        elif answers is not None and self._encoding is not None:
            self._N[:count] += self._encoding.count(answers, rows, count)
            if len(self._widths):
                self._widths += self._encoding.count_widths(answers)

    @property
    def nbytes(self) -> int:
        gathered = 0 if self._gathered is None else self._gathered.nbytes
        rows_of_supports = len(self._gaps) if self._by_visit else 1
        supports = 8 * rows_of_supports * self._N.shape[1]
        return len(self._gaps) * (2 + 8) + supports + self._widths.nbytes + gathered

    def snapshot(self) -> Statistics:
        gaps = np.array(self._gaps, dtype=np.uint16)
        order = np.argsort(gaps)
        rows = order if self._by_visit else np.zeros(1, dtype=np.intp)
        if self._gathered is not None:
            settled, waits, waiting = self._gathered.snapshot(rows)
            return Statistics(gaps[order], self._n[order], settled, self._widths.copy(), waits, waiting)
        return Statistics(gaps[order], self._n[order], self._N[rows], self._widths.copy())

    def _add_gaps(self, gaps: Column) -> None:
        """Give gaps that occur for the first time a row. The arrays double, so that adding many gaps is cheap."""
        self._rows[gaps] = np.arange(len(self._gaps), len(self._gaps) + len(gaps))
        self._gaps += gaps.tolist()
        lacking = len(self._gaps) - len(self._n)
        if lacking > 0:
            lacking = max(lacking, min(len(self._n), len(self._rows) - 1 - len(self._n)))
            self._n = np.pad(self._n, (0, lacking))
            if self._by_visit:
                self._N = np.pad(self._N, ((0, lacking), (0, 0)))
