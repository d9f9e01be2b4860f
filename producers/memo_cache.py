"""Memos kept in the process: they never change, so a copy is as good as the store's.

Only for simulations, and only without `memo_cap`. The store also settles a period's value before its first attempt
(PROTOCOLS 3) and holds devices to their cap; a memo that is found here skips both. A scenario is a pure function of
its seed, so its values are settled by themselves; a cap needs the store.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memo_store import Standing
from producers.reporting import Memos
from protocols.columns import Column, Layout, PackedBits
from protocols.encodings import Values
from protocols.keystream import Devices
from protocols.respondent import Respondent
from protocols.scheme import Question

KEY_BYTES = 12


class Shelf:
    """One attribute's memos: a table with one place for each (device, cell), where the latest comer stays.

    A fleet's devices are numbered from 0, so that each cell's devices lie side by side: nobody is displaced while
    there is room for every device at every cell it takes. The system hands out the memory as it is first used.
    """

    def __init__(self, layout: Layout, cells: int, size: int) -> None:
        self.places = max(cells, size // (KEY_BYTES + layout.bytes))
        self._stride = self.places // cells
        self._devices = np.zeros(self.places, dtype=np.uint64)
        self._cells = np.zeros(self.places, dtype=np.uint32)  # 0: nobody; c + 1: cell c
        shape = (self.places, layout.bytes) if isinstance(layout, PackedBits) else (self.places,)
        self._memos: Column = np.zeros(shape, dtype=layout.dtype)

    def find(self, devices: Devices, cells: Values) -> tuple[Column, NDArray[np.bool_]]:
        """A memo for each, and whether it is the right one."""
        places = self._places(devices, cells)
        known = (self._devices.take(places) == devices) & (self._cells.take(places) == cells + 1)
        return self._memos.take(places, axis=0), known

    def keep(self, devices: Devices, cells: Values, memos: Column) -> None:
        places = self._places(devices, cells)
        self._devices[places] = devices
        self._cells[places] = cells + 1
        self._memos[places] = memos

    def _places(self, devices: Devices, cells: Values) -> NDArray[np.int64]:
        starts = devices % np.uint64(self.places) + cells.astype(np.uint64) * np.uint64(self._stride)
        return (starts % np.uint64(self.places)).astype(np.int64)


class CachedMemos:
    """The memo store with a shelf in front of it, bounded in bytes. It answers what the store would answer."""

    def __init__(self, memos: Memos, respondent: Respondent, size: int) -> None:
        self._memos = memos
        self._respondent = respondent
        questions = respondent.scheme.questions
        self._shelves = {
            q.name: Shelf(q.mechanism.encoding.memo, q.mechanism.encoding.states, size // len(questions))
            for q in questions
        }

    def standing(self, devices: Devices, period: int) -> Standing:
        return self._memos.standing(devices, period)

    def lookup(self, question: Question, devices: Devices, values: Values, period: int) -> Column:
        cells = self._respondent.cells(question, devices, values)
        shelf = self._shelves[question.name]
        memos, known = shelf.find(devices, cells)
        missing = np.flatnonzero(~known)
        if len(missing):
            memos[missing] = self._memos.lookup(question, devices[missing], values[missing], period)
            shelf.keep(devices[missing], cells[missing], memos[missing])
        return memos

    def settle(self, question: Question, devices: Devices, values: Values, period: int) -> Values:
        return values

    def delivered(self, devices: Devices, period: int) -> None:
        self._memos.delivered(devices, period)
