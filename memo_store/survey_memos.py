"""The memos of one survey in the store.

The order of a report is: `presence.status` (may it be made, and with which gap), `lookup` (commits for the period
which memo is reported, then finds or creates it), the sink's confirmation, `presence.delivered`. Every step may be
repeated, so a crash between two of them is repaired by starting again.
"""

import numpy as np

from memo_store.connection.epochs import Seen
from memo_store.entries import AttributeEntries
from memo_store.presence import DevicePresence, FleetPresence
from memo_store.survey_state import SurveyState
from protocols.arrays import Column, Devices, Values, Words
from protocols.question import Question
from protocols.respondent import Respondent


class SurveyMemos:
    """The memos, presence and spending of one survey's devices. Not thread-safe; processes may share a store."""

    def __init__(self, state: SurveyState, respondent: Respondent) -> None:
        self.respondent = respondent
        self.presence = DevicePresence(state)
        self._state = state

    @property
    def presence_losses(self) -> tuple[int, ...]:
        """The periods from which on earlier presence is unknown, ascending: a device last seen before looks new.

        A window that contains such a period and an earlier one may count a device twice.
        """
        return self._state.losses

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
        self._state.require_open(period)
        placed = self._state.placed(devices)
        devices, cells = devices[placed.order], cells[placed.order]
        cells = np.where(devices == devices[placed.first], cells[placed.first], cells)  # of a device that came twice
        entries = AttributeEntries(self._state, self.respondent, question)
        return placed.restored(self._state.guarded(period, entries.reported, placed, devices, cells, period))

    def commit_values(self, question: Question, devices: Devices, values: Values, period: int) -> Values:
        """For one-shot surveys: each device's value of this period, the first one given."""
        self._state.require_open(period)
        placed = self._state.placed(devices)
        pads = self._state.sealer.commit_pads(question.name, devices[placed.order], period)
        sealed = (values.astype(np.uint64)[placed.order] ^ pads)[placed.first]

        def work() -> Words:
            commits = self._state.commits(self._state.tables[question.name].commits, period)
            return commits.committing(placed.names, sealed)

        committed = placed.restored(self._state.guarded(period, work) ^ pads)
        # If two devices share a name of 8 bytes, the other one's commit unseals to no value: it keeps its own.
        return np.where(committed < question.k, committed.astype(np.int64), values)
