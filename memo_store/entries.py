"""The memo entries of one attribute: which one a device reports in a period, found or created.

What is reported is decided first, as a tag, and committed for the period. If two processes commit two tags of one
device, the first one counts for both. Then the entry with that tag is found, or created from the cell that has it:
nothing is memoised that is not committed. A survey with a cap decides by its own list of the tags that a device has
used, in the order of first use; the memos themselves belong to the question, and all surveys that ask it share them.

The script that creates entries also finds those that exist. So entries are read first only while most devices have one:
where they have none, as in a fleet's first period, all but a small batch are proposed at once.
"""

import numpy as np

from memo_store.connection.layout import Placed
from memo_store.survey_state import SurveyState
from memo_store.tables.memos import Entries
from protocols.arrays import Bytes, Column, Devices, Values, Words
from protocols.question import Question


class AttributeEntries:
    """The entries of one attribute's records."""

    def __init__(self, state: SurveyState, question: Question) -> None:
        self._state = state
        self._question = question
        self._tables = state.tables[question.name]

    def reported(self, placed: Placed, devices: Devices, cells: Values, period: int) -> Column:
        """The memo that each device reports in this period. Devices are in the order of their pseudonyms.

        Raises StoreError if the period is closed.
        """
        commits = self._state.commits(self._tables.commits, period)
        pads = self._state.sealer_of(period).commit_pads(self._question.name, devices, period)
        committed, words = commits.find(placed.names)
        tags = np.where(committed, words ^ pads, self._tags(devices, cells))
        used = self._tables.used
        if used is not None:
            rest = np.flatnonzero(~committed)
            found, tags[rest], _ = used.find(self._state.link, placed.part(rest), tags[rest])
            rest = rest[~found]
            if len(rest) and commits.read_on(placed.names[rest]):
                rest = rest[~commits.find(placed.names[rest])[0]]
            new, nothing = tags[rest], np.empty((len(rest), 0), dtype=np.uint8)
            tags[rest] = used.create(self._state.epochs, placed.part(rest), lambda rows: (new[rows], nothing[rows]))[0]
        counting = commits.committing(placed.names, placed.of_first(tags ^ pads)) ^ pads
        return self._memos(devices, cells, counting)

    def _memos(self, devices: Devices, cells: Values, tags: Words) -> Column:
        """The memos with these tags, which devices have committed, in the survey's order of values.

        A memo is created from the cell that has its tag. If no cell has it, two devices share a name of 8 bytes and the
        commit is the other one's: this device reports its own cell.
        """
        layout, held = self._question.mechanism.encoding.memo, self._state.held[self._question.name]
        known, memos = held.find(devices, tags)
        if known.any():
            self._state.epochs.verify()  # a store that has lost them must get them back
        if len(rest := np.flatnonzero(~known)):
            counting, stored = self._stored(devices[rest], cells[rest], tags[rest])
            listed = self._state.respondent.listed(self._question, layout.from_bytes(stored))
            memos[rest] = layout.to_bytes(listed)
            held.add(devices[rest], counting, memos[rest])
        return layout.from_bytes(memos)

    def _stored(self, devices: Devices, cells: Values, tags: Words) -> Entries:
        """The same from the store, in the question's order, with the tags of what it has."""
        layout, placed = self._question.mechanism.encoding.memo, Placed.of(self._tables.sealer.pseudonyms(devices))
        devices, cells, tags = devices[placed.order], cells[placed.order], tags[placed.order]

        memos = self._tables.memos
        found, tags, sealed = memos.find(self._state.link, placed, tags)
        missing = np.flatnonzero(~found)

        def make(rows: slice) -> Entries:
            own = devices[missing[rows]]
            of_tags = self._cells_of(own, tags[missing[rows]], cells[missing[rows]])
            proposed = self._tags(own, of_tags)
            plain = layout.to_bytes(self._state.respondent.memoise(self._question, own, of_tags))
            return proposed, plain ^ self._pads(own, proposed)

        tags[missing], sealed[missing] = memos.create(self._state.epochs, placed.part(missing), make)
        back = placed.restored(np.arange(len(tags)))
        return tags[back], (sealed ^ self._pads(devices, tags))[back]

    def _cells_of(self, devices: Devices, tags: Words, cells: Values) -> Values:
        """The cells that have these tags; the given one where none has. Tries the given cells first."""
        cells = cells.copy()
        known = self._tags(devices, cells) == tags
        for cell in range(self._question.mechanism.encoding.states):
            rest = np.flatnonzero(~known)
            if not len(rest):
                break
            hits = rest[self._tags(devices[rest], np.full(len(rest), cell)) == tags[rest]]
            known[hits], cells[hits] = True, cell
        return cells

    def _pads(self, devices: Devices, tags: Words) -> Bytes:
        """What the memos of these entries are sealed with."""
        return self._tables.sealer.pads(self._question.name, devices, tags, self._tables.memos.memo_bytes)

    def _tags(self, devices: Devices, cells: Values) -> Words:
        return self._tables.sealer.tags(self._question.name, devices, cells)
