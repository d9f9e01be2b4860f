"""The memos of one survey in the store.

The order of a report is: `presence.status` (may it be made, and with which gap), `lookup_all` (commits for the period
which memo is reported, then finds or creates it), the sink's confirmation, `presence.delivered`. Every step may be
repeated, so a crash between two of them is repaired by starting again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memo_store.connection.epochs import Seen
from memo_store.entries import AttributeEntries
from memo_store.presence import DevicePresence, FleetPresence
from memo_store.registry import AttributeTables, SurveyRecord
from memo_store.survey_state import SurveyState
from protocols.arrays import Column, Devices, Values, Words
from protocols.question import Question
from protocols.respondent import Respondent


@dataclass(frozen=True)
class Lookup:
    """What is looked up of one attribute: the memos of these devices for these cells."""

    question: Question
    devices: Devices
    cells: Values


class SurveyMemos:
    """The memos, presence and spending of one survey's devices. Not thread-safe; processes may share a store."""

    def __init__(self, state: SurveyState, respondent: Respondent) -> None:
        self.respondent = respondent
        self.presence = DevicePresence(state)
        self._state = state
        self._sealer = state.sealer
        self._tables = {a.name: AttributeTables.of(state.sealer, state.record, a) for a in state.record.attributes}

    @property
    def record(self) -> SurveyRecord:
        return self._state.record

    @property
    def presence_losses(self) -> tuple[int, ...]:
        """The periods from which on earlier presence is unknown, ascending: a device last seen before looks new.

        A window that contains such a period and an earlier one may count a device twice.
        """
        return self._state.watermark.losses

    @property
    def seen(self) -> Seen:
        """What this process has seen of the store; for `MemoStore.survey` in a later process."""
        return self._state.seen

    def finish(self, period: int) -> None:
        """Say that periods up to this one are reported: keys of periods that ended long enough before are forgotten."""
        self._state.finish(period)

    def fleet_presence(self, devices: int) -> FleetPresence:
        """The presence of a fleet. Use it in place of `presence`, not beside it."""
        return FleetPresence(self._state, devices)

    def lookup(self, question: Question, devices: Devices, cells: Values, period: int) -> Column:
        """Each device's memo for its cell: found, or created, or at the cap the last one that the survey came to use.

        It is committed: a device that was looked up in this period before gets the memo that it got then.
        """
        return self.lookup_all([Lookup(question, devices, cells)], period)[0]

    def lookup_all(self, lookups: Sequence[Lookup], period: int) -> list[Column]:
        """The same of several attributes."""
        self._state.require_open(period)
        return [self._look_up(lookup, period) for lookup in lookups]

    def _look_up(self, lookup: Lookup, period: int) -> Column:
        placed = self._state.placed(lookup.devices)
        devices, cells = lookup.devices[placed.order], lookup.cells[placed.order]
        cells = np.where(devices == devices[placed.first], cells[placed.first], cells)  # of a device that came twice
        tables = self._tables[lookup.question.name]
        entries = AttributeEntries(self._state, self.respondent, lookup.question, tables)
        return placed.restored(self._state.guarded(period, entries.reported, placed, devices, cells, period))

    def commit_values(self, lookups: Sequence[Lookup], period: int) -> list[Values]:
        """For one-shot surveys: each device's value of this period, the first one given. The cells are values."""
        self._state.require_open(period)
        return [self._commit(given, period) for given in lookups]

    def _commit(self, given: Lookup, period: int) -> Values:
        """The values that count for the devices of an attribute: those committed before, else these."""
        placed, name = self._state.placed(given.devices), given.question.name
        pads = self._sealer.commit_pads(name, given.devices[placed.order], period)
        sealed = (given.cells.astype(np.uint64)[placed.order] ^ pads)[placed.first]

        def work() -> Words:
            return self._state.commits(self._tables[name].commits, period).committing(placed.names, sealed)

        committed = placed.restored(self._state.guarded(period, work) ^ pads)
        # If two devices share a name of 8 bytes, the other one's commit unseals to no value: it keeps its own.
        return np.where(committed < given.question.k, committed.astype(np.int64), given.cells)
