"""A fleet's cache of memos: bounded in bytes, in front of the memo store.

Memos never change, so a cached copy is as good as the store's. A memo from the cache skips what the store does besides:
it commits the period's memo before the first attempt (PROTOCOLS 3). So the cache is only for simulations, whose
scenario gives the same value at every attempt.

With `memo_cap` a device's memo does depend on what it memoised since, up to the cap. There the cache has only what the
store answered last, so nothing was memoised since; the store commits it as it does without a cache, and everything is
forgotten when the store has lost data, or when others may have written to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memo_store.survey_memos import Lookup, SurveyMemos
from protocols.arrays import Column, PackedBits, smallest_unsigned
from protocols.mechanisms import Encoding, Values
from protocols.question import Question
from protocols.randomness import Devices
from protocols.scheme import Scheme

Rows = NDArray[np.intp]


class AttributeCache:
    """The cached memos of one attribute.

    A fleet's devices are numbered from 0. Each has its own slots: one for each cell if there is room, else a few, in
    which a new memo replaces the old one. If there is not room for all devices, the last ones have no slots. The
    operating system allocates the memory as it is first used.
    """

    tag_bytes = 0

    def __init__(self, encoding: Encoding, devices: int, size: int, most_slots: int | None = None) -> None:
        layout, self._cells = encoding.memo, encoding.states
        mark = np.dtype(smallest_unsigned(self._cells + 1))
        room = size // (mark.itemsize + layout.bytes + self.tag_bytes)
        self.devices = min(devices, room)
        self._slots = max(1, min(most_slots or self._cells, self._cells, room // max(1, devices)))
        shape = (layout.bytes,) if isinstance(layout, PackedBits) else ()
        self._memos: Column = np.zeros((self.devices * self._slots, *shape), dtype=layout.dtype)
        self._marks = np.zeros(self.devices * self._slots, dtype=mark)  # 0: empty; c + 1: cell c

    def known(self, lookup: Lookup) -> tuple[Column, Rows]:
        """The memos that are known here, and the rows of those that are not."""
        found, known = self._find(lookup.devices, lookup.cells)
        return found, np.flatnonzero(~known)

    def keep(self, lookup: Lookup, memos: Column) -> None:
        """Keep what the store has found."""
        self._keep(lookup.devices, lookup.cells, memos)

    def _find(self, devices: Devices, cells: Values) -> tuple[Column, NDArray[np.bool_]]:
        """A memo for each device, and whether it is the one of its cell."""
        slots = self._slot(devices, cells)
        known = (self._marks.take(slots, mode="clip") == cells + 1) & (devices < self.devices)
        return self._memos.take(slots, axis=0, mode="clip"), known

    def _keep(self, devices: Devices, cells: Values, memos: Column) -> Rows:
        """Keep memos of the devices that have slots. Returns these rows."""
        held = np.flatnonzero(devices < self.devices)
        slots = self._slot(devices[held], cells[held])
        self._marks[slots] = cells[held] + 1
        self._memos[slots] = memos[held]
        return held

    def _slot(self, devices: Devices, cells: Values) -> NDArray[np.int64]:
        own = cells if self._slots == self._cells else cells % self._slots
        return devices.astype(np.int64) * self._slots + own


class CappedCache(AttributeCache):
    """The same for a survey with `memo_cap`: one slot for each device, with what the store answered last."""

    tag_bytes = 8

    def __init__(self, encoding: Encoding, devices: int, size: int) -> None:
        super().__init__(encoding, devices, size, most_slots=1)
        self._tags = np.zeros(self.devices, dtype=np.uint64)
        self._checked = 0

    def lookup(self, memos: SurveyMemos, lookup: Lookup, period: int) -> Column:
        """Memos from here where the store commits them, else from the store."""
        question, devices, cells = lookup.question, lookup.devices, lookup.cells
        self._check(memos, period)
        found, known = self._find(devices, cells)
        held = np.flatnonzero(known)
        if len(held):
            tags = self._tags[devices[held].astype(np.intp)]
            known[held] = memos.commit_entries(question, devices[held], tags, period) == tags
            if self._check(memos, period):  # what was committed counts, and the store makes entries for it
                known[:] = False
        missing = np.flatnonzero(~known)
        if len(missing):
            self._forget(devices[missing])  # if the store fails, it may have made some of the entries
            entries = memos.lookup_entries(question, devices[missing], cells[missing], period)
            found[missing] = entries.memos
            rows = missing[entries.current]
            held = self._keep(devices[rows], cells[rows], found[rows])
            self._tags[devices[rows[held]].astype(np.intp)] = entries.tags[entries.current][held]
        return found

    def _check(self, memos: SurveyMemos, period: int) -> bool:
        """Forget everything if the store has lost data, or may have been written to by others. Returns whether."""
        before, self._checked = self._checked, memos.check(period)
        if before == self._checked:
            return False
        self._marks[:] = 0
        return True

    def _forget(self, devices: Devices) -> None:
        self._marks[devices[devices < self.devices].astype(np.intp)] = 0


class MemoCache:
    """Memos from the cache where they are there, else from the store. Meanwhile nothing else may use that object."""

    def __init__(self, memos: SurveyMemos, scheme: Scheme, devices: int, size: int) -> None:
        self._memos = memos
        questions, survey = scheme.questions, scheme.survey
        cached = questions if survey.longitudinal else ()
        kind = AttributeCache if survey.memo_cap is None else CappedCache
        caches = {q.name: kind(q.mechanism.encoding, devices, size // len(questions)) for q in cached}
        self._caches = {name: cache for name, cache in caches.items() if cache.devices}  # those with any room

    def lookup_all(self, lookups: Sequence[Lookup], period: int) -> list[Column]:
        """Those of a survey with `memo_cap` one by one, each with its commits; of others, what is not here at once."""
        columns = [self._known(lookup, period) for lookup in lookups]
        asked = [lookup.part(rows) for lookup, (_, rows) in zip(lookups, columns, strict=True) if len(rows)]
        answers = iter(self._memos.lookup_all(asked, period) if asked else [])
        found = []
        for lookup, (column, rows) in zip(lookups, columns, strict=True):
            if len(rows):
                memos = next(answers)
                if lookup.question.name in self._caches:
                    self._caches[lookup.question.name].keep(lookup.part(rows), memos)
                    column[rows] = memos
                else:
                    column = memos
            found.append(column)
        return found

    def _known(self, lookup: Lookup, period: int) -> tuple[Column, Rows]:
        """The memos of a lookup, and the rows that the store must still be asked for."""
        cache = self._caches.get(lookup.question.name)
        if isinstance(cache, CappedCache):
            return cache.lookup(self._memos, lookup, period), np.empty(0, dtype=np.intp)
        if cache is not None:
            return cache.known(lookup)
        layout = lookup.question.mechanism.encoding.memo
        return layout.from_bytes(np.empty((0, layout.bytes), dtype=np.uint8)), np.arange(len(lookup.devices))

    def commit_values(self, question: Question, devices: Devices, values: Values, period: int) -> Values:
        return self._memos.commit_values(question, devices, values, period)
