"""The memos of one survey in the store.

The order of a report is: `presence.status` (may it be made, and with which gap), `lookup` (commits for the period
which memo is reported, then finds or creates it), the sink's confirmation, `presence.delivered`. Every step may be
repeated, so a crash between two of them is repaired by starting again.
"""

from functools import cached_property

import numpy as np

from memo_store.entries import AttributeEntries
from memo_store.presence import DevicePresence, FleetPresence
from memo_store.survey_state import SurveyState
from protocols.arrays import Column, Devices, Values
from protocols.question import Question


class SurveyMemos(SurveyState):
    """The memos, presence and spending of one survey's devices. Not thread-safe; processes may share a store."""

    @cached_property
    def presence(self) -> DevicePresence:
        """The presence of devices, one by one."""
        return DevicePresence(self)

    def fleet_presence(self, devices: int) -> FleetPresence:
        """The presence of a fleet. Use it in place of `presence`, not beside it."""
        return FleetPresence(self, devices)

    def lookup(self, question: Question, devices: Devices, cells: Values, period: int) -> Column:
        """Each device's memo for its cell: found, or created, or at the cap the last one that the survey came to use.

        It is committed: a device that was looked up in this period before gets the memo that it got then.
        """
        self.require_open(period)
        placed = self.placed(devices)
        devices, cells = devices.take(placed.order), cells.take(placed.order)
        cells = np.where(devices == placed.of_first(devices), placed.of_first(cells), cells)  # of one that came twice
        entries = AttributeEntries(self, question)
        return placed.restored(self.guarded(period, entries.reported, placed, devices, cells, period))

    def commit_values(self, question: Question, devices: Devices, values: Values, period: int) -> Values:
        """For one-shot surveys: each device's value of this period, the first one given."""
        self.require_open(period)
        placed = self.placed(devices)
        pads = self.sealer_of(period).commit_pads(question.name, devices[placed.order], period)
        sealed = placed.of_first(values.astype(np.uint64)[placed.order] ^ pads)
        table = self.tables[question.name].commits
        counting = self.guarded(period, lambda: self.commits(table, period).committing(placed.names, sealed))
        committed = placed.restored(counting ^ pads)
        # If two devices share a name of 8 bytes, the other one's commit unseals to no value: it keeps its own.
        return np.where(committed < question.k, committed.astype(np.int64), values)
