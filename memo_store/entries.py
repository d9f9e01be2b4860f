"""The memo entries of one attribute: found, created, and committed for a period.

An entry exists before a period commits it, so a commit names an entry, unless the store has lost it. If two processes
commit two entries of one device, the first one counts for both. Nothing is created for a device that has committed: its
entry is fetched by its tag, also when its record has filled since.

The script that creates entries also finds those that exist. So entries are read first only while most devices have one:
where they have none, as in a fleet's first period, all but the first batch are proposed at once.
"""

from __future__ import annotations

import numpy as np

from memo_store.connection.layout import CHUNK, Placed, read_fields
from memo_store.survey_state import SurveyState
from memo_store.tables.memos import MemoTable
from protocols.arrays import Bytes, Column, Devices, Mask, Values, Words
from protocols.question import Question
from protocols.respondent import Respondent

Entries = tuple[Words, Bytes]  # tags and sealed memos


class AttributeEntries:
    """The entries of one attribute's records. All devices are in the order of their pseudonyms."""

    def __init__(self, state: SurveyState, respondent: Respondent, question: Question, table: MemoTable) -> None:
        self._state = state
        self._respondent = respondent
        self._question = question
        self._table = table

    def reported(self, placed: Placed, devices: Devices, cells: Values, period: int) -> Entries:
        """The entry that each device reports in this period.

        Raises StoreError if the period is closed.
        """
        commits = self._state.commits(self._table.name, period)
        pads = self._state.sealer.commit_pads(self._question.name, devices, period)
        committed, words = commits.known(placed.names)
        proposed = self._tags(devices, cells)
        wanted = np.where(committed, words ^ pads, proposed)
        found, tags, sealed = self._find(placed, wanted, exact=committed)
        missing = np.flatnonzero(~found & ~committed)
        if len(missing):
            if commits.read_on(placed.names[missing]):
                missing = missing[~commits.known(placed.names[missing])[0]]
            ours = self._create(placed.part(missing), devices[missing], cells[missing], proposed[missing])
            tags[missing], sealed[missing] = ours
            found[missing] = True
        counting = commits.committing(placed.names, (tags ^ pads)[placed.first]) ^ pads
        others = np.flatnonzero(~found | (counting != tags))
        if len(others):
            part = placed.part(others), devices[others], cells[others], counting[others]
            tags[others], sealed[others] = self._committed(*part)
        return tags, sealed

    def _committed(self, placed: Placed, devices: Devices, cells: Values, tags: Words) -> Entries:
        """The entries with these tags, which the devices have committed.

        An entry that the store has lost is created again, from the cell that has its tag. If no cell has it, two
        devices share a name of 8 bytes and the commit is the other one's: this device reports its own cell.
        """
        exact = np.ones(len(tags), dtype=np.bool_)
        found, tags, sealed = self._find(placed, tags, exact)
        lost = np.flatnonzero(~found)
        if len(lost):
            known, cells = self._cells_of(devices[lost], tags[lost], cells[lost])
            proposed = self._tags(devices[lost], cells)
            again = self._create(placed.part(lost), devices[lost], cells, proposed, reported=known)
            tags[lost], sealed[lost] = again
        return tags, sealed

    def _cells_of(self, devices: Devices, tags: Words, cells: Values) -> tuple[Mask, Values]:
        """Which tags have a cell, and that cell (the given one for the others). Tries the given cells first."""
        cells = cells.copy()
        known = self._tags(devices, cells) == tags
        for cell in range(self._question.mechanism.encoding.states):
            rest = np.flatnonzero(~known)
            if not len(rest):
                break
            hits = rest[self._tags(devices[rest], np.full(len(rest), cell)) == tags[rest]]
            known[hits], cells[hits] = True, cell
        return known, cells

    def _find(self, placed: Placed, tags: Words, exact: Mask) -> tuple[Mask, Words, Bytes]:
        """Which devices are known to have their entry, its tag and the sealed memo (see `MemoTable.pick`).

        Devices are in a random order. After a batch in which most have none, only `exact` entries are read.
        """
        found, tags = np.zeros(len(tags), dtype=np.bool_), tags.copy()
        sealed = np.zeros((len(tags), self._table.memo_bytes), dtype=np.uint8)
        rest = np.arange(len(tags))
        while len(rest):
            rows, rest = rest[:CHUNK], rest[CHUNK:]
            answers = self._state.link.run(read_fields(self._table.name, placed.part(rows)))
            found[rows], tags[rows], sealed[rows] = self._table.pick(answers, tags[rows], exact[rows])
            if 2 * np.count_nonzero(found[rows]) < len(rows):
                rest = rest[exact[rest]]
        return found, tags, sealed

    def _create(
        self, placed: Placed, devices: Devices, cells: Values, proposed: Words, reported: Mask | None = None
    ) -> Entries:
        """Propose the derived memos, under the tags of their cells.

        Returns the entries that count: ours, another process's, or those held at the cap.

        Entries that were reported before the store lost them count in any case, even if others fill the record now.
        """
        layout, table = self._question.mechanism.encoding.memo, self._table
        tags, sealed = proposed.copy(), np.empty((len(devices), table.memo_bytes), dtype=np.uint8)
        for rows in placed.slices(CHUNK):
            part = placed.part(rows)
            memos = layout.to_bytes(self._respondent.memoise(self._question, devices[rows], cells[rows]))
            ours = memos ^ self._pads(devices[rows], proposed[rows])
            answers = self._state.epochs.run(table.propose(part, proposed[rows], ours))
            tags[rows], sealed[rows] = table.overrule(part, proposed[rows], ours, answers)
            if reported is not None:
                again = reported[rows] & (tags[rows] != proposed[rows])
                tags[rows][again], sealed[rows][again] = proposed[rows][again], ours[again]
        return tags, sealed

    def memos(self, devices: Devices, tags: Words, sealed: Bytes) -> Column:
        """The memos of entries."""
        return self._question.mechanism.encoding.memo.from_bytes(sealed ^ self._pads(devices, tags))

    def _pads(self, devices: Devices, tags: Words) -> Bytes:
        """What the memos of these entries are sealed with."""
        return self._state.sealer.pads(self._question.name, devices, tags, self._table.memo_bytes)

    def _tags(self, devices: Devices, cells: Values) -> Words:
        return self._state.sealer.tags(self._question.name, devices, cells)
