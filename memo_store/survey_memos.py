"""The memos of one survey in the store.

The order of a report is: `presence.status` (may it be made, and with which gap), `lookup` per attribute (commits the
period's cell, then finds or creates its memo), the sink's confirmation, `presence.delivered`. Every step may be
repeated, so a crash between two of them is repaired by starting again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.layout import CHUNK, Bytes, Placed, Words
from memo_store.ledger import Ledger, read_ledger
from memo_store.presence import DevicePresence, FleetPresence
from memo_store.registry import SurveyRecord, memo_table
from memo_store.survey_state import SurveyState
from memo_store.tables.memos import MemoTable
from protocols.arrays import Column
from protocols.errors import StoreError
from protocols.mechanisms import Values
from protocols.question import Question
from protocols.randomness import Devices
from protocols.respondent import Respondent


class SurveyMemos:
    """The memos, presence and spending of one survey's devices. Not thread-safe; processes may share a store."""

    def __init__(self, state: SurveyState, respondent: Respondent) -> None:
        self.respondent = respondent
        self.presence = DevicePresence(state)
        self._state = state
        self._sealer = state.sealer
        self._tables = {a.name: memo_table(state.sealer, state.record, a) for a in state.record.attributes}

    @property
    def record(self) -> SurveyRecord:
        return self._state.record

    @property
    def presence_losses(self) -> tuple[int, ...]:
        """The periods from which on earlier presence is unknown, ascending: a device last seen before looks new.

        A window that contains such a period and an earlier one may count a device twice.
        """
        return self._state.presence_losses

    def fleet_presence(self, devices: int) -> FleetPresence:
        """The presence of a fleet of so many devices. Use it in place of `presence`, not beside it."""
        return FleetPresence(self._state, devices)

    def lookup(self, question: Question, devices: Devices, cells: Values, period: int) -> Column:
        """Each device's memo for its cell: found, or created, or at the cap the last one created.

        Commits the period's cell first: a device that was looked up in this period before gets the memo of the cell it
        had then.
        """
        survey = self._state.scheme.survey
        if not survey.longitudinal:
            raise StoreError(f"survey {survey.id!r} is one-shot and memoises nothing", "use commit_values instead")
        table, encoding = self._tables[question.name], question.mechanism.encoding
        placed = self._placed(devices)
        devices = devices[placed.order]
        cells = self._commit(question, placed, devices, cells[placed.order], encoding.states, period)
        found, tags, sealed = self._find(table, placed, self._sealer.tags(question.name, devices, cells))
        missing = np.flatnonzero(~found)
        for first in range(0, len(missing), CHUNK):
            rows = missing[first : first + CHUNK]
            tags[rows], sealed[rows] = self._state.guarded(
                period, self._create, question, placed.part(rows), devices[rows], cells[rows], tags[rows]
            )
        memos = sealed ^ self._sealer.pads(question.name, devices, tags, table.memo_bytes)
        return placed.restored(encoding.memo.from_bytes(memos))

    def commit_values(self, question: Question, devices: Devices, values: Values, period: int) -> Values:
        """For one-shot surveys: each device's value of this period, which is the first one given."""
        placed = self._placed(devices)
        devices, values = devices[placed.order], values[placed.order]
        return placed.restored(self._commit(question, placed, devices, values, question.k, period))

    def ledger(self, devices: Devices) -> Ledger:
        """What these devices have spent in this survey."""
        return read_ledger(self._state.link, self._sealer, self.record, devices)

    def _commit(
        self, question: Question, placed: Placed, devices: Devices, cells: Values, states: int, period: int
    ) -> Values:
        """The cells that count in this period: those committed before, and these for every other device."""
        if len(cells) and not 0 <= cells.min() <= cells.max() < states:
            raise StoreError(
                f"a cell of {question.name!r} is not one of 0 to {states - 1}",
                "derive cells with Respondent.cells, from positions in the survey's list of values",
            )
        self._state.require_open(period)
        pads = self._sealer.commit_pads(question.name, devices, period)
        proposed = (cells.astype(np.uint64) ^ pads)[placed.first]
        committed = self._state.commit(self._tables[question.name].name, period, placed.names, proposed) ^ pads
        # Names are 8 bytes. If two devices share one, the second one's commit unseals to no cell: it keeps its own.
        return np.where(committed < states, committed.astype(np.int64), cells)

    def _find(self, table: MemoTable, placed: Placed, tags: Words) -> tuple[NDArray[np.bool_], Words, Bytes]:
        """Which devices have their memo (or are at their cap), its tag and the sealed memo."""
        picked = [
            table.pick(self._state.link.run(table.read(placed.part(rows))), tags[rows]) for rows in placed.slices(CHUNK)
        ]
        found, tags, sealed = (np.concatenate(column) for column in zip(*picked, strict=True))
        return found, tags, sealed

    def _create(
        self, question: Question, placed: Placed, devices: Devices, cells: Values, tags: Words
    ) -> tuple[Words, Bytes]:
        """Propose the derived memos. Returns those that count: ours, another process's, or at the cap an older one."""
        table, layout = self._tables[question.name], question.mechanism.encoding.memo
        memos = layout.to_bytes(self.respondent.memoise(question, devices, cells))
        sealed = memos ^ self._sealer.pads(question.name, devices, tags, table.memo_bytes)
        return table.overrule(placed, tags, sealed, self._state.epochs.run(table.propose(placed, tags, sealed)))

    def _placed(self, devices: Devices) -> Placed:
        return Placed.of(self._sealer.pseudonyms(devices))
