"""Answers with a fresh hash, gathered: the supports of all values are counted from many of them at once.

That takes as long for one answer as for a million (`protocols.mechanisms.FreshHash.supports`). So answers wait, as they
are, sorted: one number each, which is less than a counter for every hash and symbol while they are few. Once they take
as much as the supports of all values do, their supports are counted and added up, and they are dropped. So a record has
at most 8 bytes for each gap and value, or `ALWAYS_WAITING`, however many answers came. All of it only adds whole
numbers, so it does not matter when supports are counted, nor in how many parts.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Column, Places, Rows, Whole
from protocols.mechanisms import FreshHash

ALWAYS_WAITING = 1 << 20
"""So many bytes of answers may wait, also where the supports take less: counting them takes its time."""
SUPPORT_BYTES = 4
"""What the support of a value takes in a record, while there are fewer than 2^32 answers."""


class Gathered:
    """The answers of one attribute and period by row: those that wait, and the supports of all others."""

    def __init__(self, encoding: FreshHash) -> None:
        self._encoding = encoding
        self._settled: Whole | None = None  # [row, value]
        self._parts: list[tuple[Rows, Column]] = []
        self._rows = 0
        self._waiting = 0

    def restore(self, settled: Whole, waits: Whole, waiting: Column) -> None:
        """Go on from what `snapshot` gave, with rows in that order."""
        self._rows = len(settled)
        if settled.shape[1]:
            self._settled = settled.astype(np.int64)
        self._parts = [(np.repeat(np.arange(self._rows, dtype=np.int32), waits), waiting)]
        self._waiting = len(waiting)

    def add(self, rows: Rows, answers: Column, count: int) -> None:
        """Take answers, each of one of `count` rows."""
        self._rows = max(self._rows, count)
        self._parts.append((rows, np.array(answers)))  # a copy: they are a view of a record
        self._waiting += len(answers)
        if self._waiting_bytes > max(ALWAYS_WAITING, SUPPORT_BYTES * self._rows * self._encoding.k):
            self._settle()

    @property
    def _waiting_bytes(self) -> int:
        return self._waiting * self._encoding.answer.bytes

    @property
    def nbytes(self) -> int:
        """What it takes in a record."""
        settled = 0 if self._settled is None else SUPPORT_BYTES * self._rows * self._encoding.k
        return settled + 8 * self._rows + self._waiting_bytes

    def snapshot(self, order: Places) -> tuple[NDArray[Any], Whole, Column]:
        """The supports that are counted, how many answers of each row wait, and these; rows in the order given."""
        rows, answers = self._joined()
        places = np.argsort(order).astype(np.int32)[rows]
        sorted_by = np.lexsort((answers, places)) if self._rows > 1 else np.argsort(answers, kind="stable")
        self._parts = [(rows[sorted_by], answers[sorted_by])]
        waits = np.bincount(places, minlength=len(order)).astype(np.int64)
        if self._settled is None:
            return np.zeros((len(order), 0), dtype=np.uint32), waits, self._parts[0][1]
        settled = self._padded()[order]
        fits = settled.max(initial=0) < 1 << 32
        return settled.astype(np.uint32) if fits else settled, waits, self._parts[0][1]

    def _settle(self) -> None:
        rows, answers = self._joined()
        settled = self._padded()
        for row in np.unique(rows):
            settled[row] += self._encoding.supports(answers[rows == row])
        self._settled, self._parts, self._waiting = settled, [], 0

    def _joined(self) -> tuple[Rows, Column]:
        rows = [rows for rows, _ in self._parts] or [np.zeros(0, dtype=np.int32)]
        answers = [answers for _, answers in self._parts] or [np.zeros(0, dtype=self._encoding.answer.dtype)]
        return np.concatenate(rows), np.concatenate(answers)

    def _padded(self) -> Whole:
        """The supports, with rows for gaps that came since they were counted."""
        held = np.zeros((0, self._encoding.k), dtype=np.int64) if self._settled is None else self._settled
        more = np.zeros((self._rows - len(held), self._encoding.k), dtype=np.int64)
        return np.concatenate([held, more])
