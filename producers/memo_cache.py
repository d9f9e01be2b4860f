"""A fleet's cache of memos: bounded in bytes, in front of the memo store.

Memos never change, so a cached copy is as good as the store's. A memo from the cache skips what the store does besides:
it commits the period's memo before the first attempt (PROTOCOLS 3) and enforces caps. So the cache is only for
simulations, whose scenario gives the same value at every attempt, and only for surveys without `memo_cap`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memo_store.survey_memos import SurveyMemos
from protocols.arrays import Column, PackedBits, smallest_unsigned
from protocols.mechanisms import Encoding, Values
from protocols.question import Question
from protocols.randomness import Devices
from protocols.scheme import Scheme


class AttributeCache:
    """The cached memos of one attribute.

    A fleet's devices are numbered from 0. Each has its own slots: one for each cell if there is room, else a few, in
    which a new memo replaces the old one. If there is not room for all devices, the last ones have no slots. The
    operating system allocates the memory as it is first used.
    """

    def __init__(self, encoding: Encoding, devices: int, size: int) -> None:
        layout, self._cells = encoding.memo, encoding.states
        mark = np.dtype(smallest_unsigned(self._cells + 1))
        room = size // (mark.itemsize + layout.bytes)
        self.devices = min(devices, room)
        self._slots = max(1, min(self._cells, room // max(1, devices)))
        shape = (layout.bytes,) if isinstance(layout, PackedBits) else ()
        self._memos: Column = np.zeros((self.devices * self._slots, *shape), dtype=layout.dtype)
        self._marks = np.zeros(self.devices * self._slots, dtype=mark)  # 0: empty; c + 1: cell c

    def find(self, devices: Devices, cells: Values) -> tuple[Column, NDArray[np.bool_]]:
        """A memo for each device, and whether it is the one of its cell."""
        slots = self._slot(devices, cells)
        known = (self._marks.take(slots, mode="clip") == cells + 1) & (devices < self.devices)
        return self._memos.take(slots, axis=0, mode="clip"), known

    def keep(self, devices: Devices, cells: Values, memos: Column) -> None:
        held = np.flatnonzero(devices < self.devices)
        slots = self._slot(devices[held], cells[held])
        self._marks[slots] = cells[held] + 1
        self._memos[slots] = memos[held]

    def _slot(self, devices: Devices, cells: Values) -> NDArray[np.int64]:
        own = cells if self._slots == self._cells else cells % self._slots
        return devices.astype(np.int64) * self._slots + own


class MemoCache:
    """Memos from the cache where they are there, else from the store."""

    def __init__(self, memos: SurveyMemos, scheme: Scheme, devices: int, size: int) -> None:
        self._memos = memos
        questions, survey = scheme.questions, scheme.survey
        cached = questions if survey.longitudinal and survey.memo_cap is None else ()
        caches = {q.name: AttributeCache(q.mechanism.encoding, devices, size // len(questions)) for q in cached}
        self._caches = {name: cache for name, cache in caches.items() if cache.devices}  # those with any room

    def lookup(self, question: Question, devices: Devices, cells: Values, period: int) -> Column:
        cache = self._caches.get(question.name)
        if cache is None:
            return self._memos.lookup(question, devices, cells, period)
        memos, known = cache.find(devices, cells)
        missing = np.flatnonzero(~known)
        if len(missing):
            memos[missing] = self._memos.lookup(question, devices[missing], cells[missing], period)
            cache.keep(devices[missing], cells[missing], memos[missing])
        return memos

    def commit_values(self, question: Question, devices: Devices, values: Values, period: int) -> Values:
        return self._memos.commit_values(question, devices, values, period)
