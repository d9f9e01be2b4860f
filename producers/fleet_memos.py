"""What a fleet knows by itself, so that it need not ask: memos it has seen, and who reported when.

Memos never change, so a copy is as good as the store's; but only for simulations, and only without `memo_cap`. The
store also settles a period's value before its first attempt (PROTOCOLS 3) and holds devices to their cap; a memo that
is found here skips both. A scenario is a pure function of its seed, so its values are settled by themselves; a cap
needs the store.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memo_store.survey_memos import SurveyMemos
from memo_store.tables import Standing
from protocols.arrays import Column, Layout, PackedBits, smallest_unsigned
from protocols.mechanisms import Values
from protocols.question import Question
from protocols.randomness import Devices
from protocols.respondent import Respondent


class Shelf:
    """One attribute's memos. A fleet's devices are numbered from 0: each has a few places of its own, one for each
    cell if there is room, and in each place the latest comer stays. The last devices have none if there is not room
    for all. The system hands out the memory as it is first used.
    """

    def __init__(self, layout: Layout, cells: int, devices: int, size: int) -> None:
        mark = np.dtype(smallest_unsigned(cells + 1))
        room = size // (mark.itemsize + layout.bytes)
        self.devices = min(devices, room)
        self._cells = cells
        self._places = max(1, min(cells, room // max(1, devices)))
        shape = (layout.bytes,) if isinstance(layout, PackedBits) else ()
        self._memos: Column = np.zeros((self.devices * self._places, *shape), dtype=layout.dtype)
        self._marks = np.zeros(self.devices * self._places, dtype=mark)  # 0: nobody; c + 1: cell c

    def find(self, devices: Devices, cells: Values) -> tuple[Column, NDArray[np.bool_]]:
        """A memo for each, and whether it is the right one."""
        places = self._place(devices, cells)
        known = (self._marks.take(places, mode="clip") == cells + 1) & (devices < self.devices)
        return self._memos.take(places, axis=0, mode="clip"), known

    def keep(self, devices: Devices, cells: Values, memos: Column) -> None:
        held = np.flatnonzero(devices < self.devices)
        places = self._place(devices[held], cells[held])
        self._marks[places] = cells[held] + 1
        self._memos[places] = memos[held]

    def _place(self, devices: Devices, cells: Values) -> NDArray[np.int64]:
        own = cells if self._places == self._cells else cells % self._places
        return devices.astype(np.int64) * self._places + own


class FleetMemos:
    """The memo store as a fleet uses it: presence on a roll, memos from a shelf where they may be.

    It answers what the store would answer; shelves are bounded in bytes.
    """

    def __init__(self, memos: SurveyMemos, respondent: Respondent, devices: int, shelf_bytes: int) -> None:
        self._memos = memos
        self._respondent = respondent
        self._roll = memos.roll(devices)
        questions, survey = respondent.scheme.questions, respondent.scheme.survey
        shelved = questions if survey.longitudinal and survey.memo_cap is None else ()
        shelves = {q.name: _shelf(q, devices, shelf_bytes // len(questions)) for q in shelved}
        self._shelves = {name: shelf for name, shelf in shelves.items() if shelf.devices}  # those with any room

    def standing(self, devices: Devices, period: int) -> Standing:
        return self._roll.standing(devices, period)

    def lookup(self, question: Question, devices: Devices, values: Values, period: int) -> Column:
        shelf = self._shelves.get(question.name)
        if shelf is None:
            return self._memos.lookup(question, devices, values, period)
        cells = self._respondent.cells(question, devices, values)
        memos, known = shelf.find(devices, cells)
        missing = np.flatnonzero(~known)
        if len(missing):
            memos[missing] = self._memos.lookup(question, devices[missing], values[missing], period)
            shelf.keep(devices[missing], cells[missing], memos[missing])
        return memos

    def settle(self, question: Question, devices: Devices, values: Values, period: int) -> Values:
        return self._memos.settle(question, devices, values, period)

    def delivered(self, devices: Devices, period: int) -> None:
        self._roll.delivered(devices, period)


def _shelf(question: Question, devices: int, size: int) -> Shelf:
    encoding = question.mechanism.encoding
    return Shelf(encoding.memo, encoding.states, devices, size)
