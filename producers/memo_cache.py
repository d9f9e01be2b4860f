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

from memo_store.survey_memos import FoundEntries, HeldEntries, Lookup, SurveyMemos
from protocols.arrays import Column, Devices, Mask, PackedBits, Places, Values, smallest_unsigned
from protocols.mechanisms import Encoding
from protocols.scheme import Scheme


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

    def find(self, lookup: Lookup) -> tuple[Column, Mask]:
        """A memo for each device, and whether it is the one of its cell."""
        devices, cells = lookup.devices, lookup.cells
        slots = self._slot(devices, cells)
        known = (self._marks.take(slots, mode="clip") == cells + 1) & (devices < self.devices)
        return self._memos.take(slots, axis=0, mode="clip"), known

    def keep(self, lookup: Lookup, found: FoundEntries) -> None:
        """Keep what the store has found."""
        self._keep(lookup, found.memos)

    def _keep(self, lookup: Lookup, memos: Column) -> Places:
        """Keep memos of the devices that have slots. Returns these rows."""
        held = np.flatnonzero(lookup.devices < self.devices)
        cells = lookup.cells[held]
        slots = self._slot(lookup.devices[held], cells)
        self._marks[slots] = cells + 1
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

    def held(self, lookup: Lookup) -> HeldEntries:
        """The entries of devices whose memos are known."""
        return HeldEntries(lookup.question, lookup.devices, self._tags[lookup.devices.astype(np.intp)])

    def keep(self, lookup: Lookup, found: FoundEntries) -> None:
        """Keep what the store has found, if the next period has the same."""
        rows = np.flatnonzero(found.current)
        held = rows[self._keep(lookup.part(rows), found.memos[rows])]
        self._tags[lookup.devices[held].astype(np.intp)] = found.tags[held]

    def forget(self, devices: Devices) -> None:
        self._marks[devices[devices < self.devices].astype(np.intp)] = 0

    def forget_all(self) -> None:
        self._marks[:] = 0


class MemoCache:
    """Memos from the cache where they are there, else from the store. Meanwhile nothing else may use that object."""

    def __init__(self, memos: SurveyMemos, scheme: Scheme, devices: int, size: int) -> None:
        self._memos = memos
        questions, survey = scheme.questions, scheme.survey
        cached = questions if survey.longitudinal else ()
        kind = AttributeCache if survey.memo_cap is None else CappedCache
        caches = {q.name: kind(q.mechanism.encoding, devices, size // len(questions)) for q in cached}
        self._caches = {name: cache for name, cache in caches.items() if cache.devices}  # those with any room
        self._capped = {name: cache for name, cache in self._caches.items() if isinstance(cache, CappedCache)}
        self._checked = 0

    def lookup_all(self, lookups: Sequence[Lookup], period: int) -> list[Column]:
        """The memos of several attributes. With `memo_cap` the store commits what is here, and finds the rest."""
        if self._capped:
            self._check(period)
        here = [self._find(lookup) for lookup in lookups]
        if self._capped:
            self._commit(lookups, [known for _, known in here], period)
        rest = [np.flatnonzero(~known) for _, known in here]
        asked = [lookup.part(rows) for lookup, rows in zip(lookups, rest, strict=True) if len(rows)]
        for part in asked:
            if part.question.name in self._capped:  # if the store fails, it may have made some of the entries
                self._capped[part.question.name].forget(part.devices)
        parts = zip(asked, self._memos.lookup_entries(asked, period) if asked else (), strict=True)
        columns = []
        for lookup, (column, _), rows in zip(lookups, here, rest, strict=True):
            if len(rows):
                part, found = next(parts)
                if cache := self._caches.get(lookup.question.name):
                    cache.keep(part, found)
                    column[rows] = found.memos
                else:
                    column = found.memos
            columns.append(column)
        return columns

    def commit_values(self, lookups: Sequence[Lookup], period: int) -> list[Values]:
        return self._memos.commit_values(lookups, period)

    def _find(self, lookup: Lookup) -> tuple[Column, Mask]:
        """What is here of a lookup, and which of its rows that is."""
        if cache := self._caches.get(lookup.question.name):
            return cache.find(lookup)
        layout = lookup.question.mechanism.encoding.memo
        nothing = layout.from_bytes(np.empty((0, layout.bytes), dtype=np.uint8))
        return nothing, np.zeros(len(lookup.devices), dtype=np.bool_)

    def _commit(self, lookups: Sequence[Lookup], known: Sequence[Mask], period: int) -> None:
        """Let the store commit what is known here. What does not count is not known, nor anything after a loss."""
        rows = [np.flatnonzero(some) for some in known]
        held = [
            self._capped[lookup.question.name].held(lookup.part(some))
            for lookup, some in zip(lookups, rows, strict=True)
            if len(some)
        ]
        if not held:
            return
        counting = zip(held, self._memos.commit_entries(held, period), strict=True)
        for flags, some in zip(known, rows, strict=True):
            if len(some):
                entries, tags = next(counting)
                flags[some] = tags == entries.tags
        if self._check(period):  # what was committed counts, and the store makes entries for it
            for flags in known:
                flags[:] = False

    def _check(self, period: int) -> bool:
        """Forget everything if the store has lost data, or may have been written to by others. Returns whether."""
        before, self._checked = self._checked, self._memos.check(period)
        if before == self._checked:
            return False
        for cache in self._capped.values():
            cache.forget_all()
        return True
