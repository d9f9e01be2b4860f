"""The memos of one survey in the store.

The order of a report is: `presence.status` (may it be made, and with which gap), `lookup_all` (finds or
creates the device's memo entry, then commits it for the period), the sink's confirmation, `presence.delivered`. Every
step may be repeated, so a crash between two of them is repaired by starting again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Seen
from memo_store.connection.layout import CHUNK, Placed, Words
from memo_store.connection.together import together
from memo_store.entries import AttributeEntries, Entries
from memo_store.ledger import Ledger, read_ledger
from memo_store.presence import DevicePresence, FleetPresence
from memo_store.registry import SurveyRecord, memo_table
from memo_store.survey_state import SurveyState
from protocols.arrays import Column
from protocols.errors import StoreError
from protocols.mechanisms import Values
from protocols.question import Question
from protocols.randomness import Devices
from protocols.respondent import Respondent


@dataclass(frozen=True)
class Lookup:
    """What is looked up of one attribute: the memos of these devices for these cells.

    `new`: most of these memos do not exist yet, as far as the caller knows. It decides what is asked first.
    """

    question: Question
    devices: Devices
    cells: Values
    new: bool = False

    def part(self, rows: NDArray[np.intp]) -> Lookup:
        """Some of the devices."""
        return Lookup(self.question, self.devices[rows], self.cells[rows], self.new)


@dataclass(frozen=True)
class HeldEntries:
    """Entries of one attribute that were looked up before, by their tags; of one-shot surveys, values."""

    question: Question
    devices: Devices
    tags: Words


@dataclass(frozen=True)
class FoundEntries:
    """The entries of devices in one period."""

    tags: Words
    memos: Column
    current: NDArray[np.bool_]  # whether the next period has the same entry, if nothing is created until then


Asked = TypeVar("Asked", Lookup, HeldEntries)


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

    @property
    def seen(self) -> Seen:
        """What this process has seen of the store; for `MemoStore.survey` in a later process."""
        return self._state.seen

    def fleet_presence(self, devices: int) -> FleetPresence:
        """The presence of a fleet of so many devices. Use it in place of `presence`, not beside it."""
        return FleetPresence(self._state, devices)

    def lookup(self, question: Question, devices: Devices, cells: Values, period: int) -> Column:
        """Each device's memo for its cell: found, or created, or at the cap the last one created.

        Commits the memo's entry: a device that was looked up in this period before gets the memo that it got then.
        """
        (found,) = self._look_up([Lookup(question, devices, cells)], period)
        return found.memos

    def lookup_all(self, lookups: Sequence[Lookup], period: int) -> list[Column]:
        """The same of several attributes; those of few devices together, in the batches that one of them needs."""
        return [found.memos for found in self._look_up(lookups, period)]

    def lookup_entries(self, lookups: Sequence[Lookup], period: int) -> list[FoundEntries]:
        """The same, with what a cache must know of the entries."""
        return self._look_up(lookups, period)

    def _look_up(self, lookups: Sequence[Lookup], period: int) -> list[FoundEntries]:
        survey = self._state.scheme.survey
        if not survey.longitudinal:
            raise StoreError(f"survey {survey.id!r} is one-shot and memoises nothing", "use commit_values instead")
        for lookup in lookups:
            _check_cells(lookup.question, lookup.cells, lookup.question.mechanism.encoding.states)
        self._state.require_open(period)
        return [found for some in _in_batches(lookups) for found in self._look_up_together(some, period)]

    def _look_up_together(self, lookups: Sequence[Lookup], period: int) -> list[FoundEntries]:
        prepared = [self._prepared(lookup) for lookup in lookups]

        def work() -> list[tuple[Entries, NDArray[np.bool_]]]:
            return together(
                self._state.epochs,
                [
                    entries.reported(placed, devices, cells, period, lookup.new)
                    for lookup, (entries, placed, devices, cells) in zip(lookups, prepared, strict=True)
                ],
            )

        found = []
        for (entries, placed, devices, _), ((tags, sealed), current) in zip(
            prepared, self._state.guarded(period, work), strict=True
        ):
            memos = entries.memos(devices, tags, sealed)
            found.append(FoundEntries(placed.restored(tags), placed.restored(memos), placed.restored(current)))
        return found

    def _prepared(self, lookup: Lookup) -> tuple[AttributeEntries, Placed, Devices, Values]:
        """The entries of an attribute, and what is looked up, in the order of pseudonyms."""
        placed = self._state.placed(lookup.devices)
        devices, cells = lookup.devices[placed.order], lookup.cells[placed.order]
        cells = np.where(devices == devices[placed.first], cells[placed.first], cells)  # of a device that came twice
        table = self._tables[lookup.question.name]
        return AttributeEntries(self._state, self.respondent, lookup.question, table), placed, devices, cells

    def commit_entries(self, held: Sequence[HeldEntries], period: int) -> list[Words]:
        """Commit entries that were looked up before, each device's in one row. Returns the tags that count.

        Only for entries that `lookup` would return now: see `check`.
        """
        self._state.require_open(period)
        return self._commit(held, period)

    def check(self, period: int) -> int:
        """Notice a loss. Returns how often the store has lost data, or may have been written to by others, until now.

        While this number stays, the store knows of these devices what it learned from this object, and no more.
        """
        self._state.guarded(period, self._state.epochs.verify)
        return self._state.epochs.disturbances

    def commit_values(self, lookups: Sequence[Lookup], period: int) -> list[Values]:
        """For one-shot surveys: each device's value of this period, the first one given. The cells are values."""
        survey = self._state.scheme.survey
        if survey.longitudinal:
            raise StoreError(f"survey {survey.id!r} commits memos, not values", "use lookup instead")
        for given in lookups:
            _check_cells(given.question, given.cells, given.question.k)
        self._state.require_open(period)
        proposed = [HeldEntries(given.question, given.devices, given.cells.astype(np.uint64)) for given in lookups]
        # Names are 8 bytes. If two devices share one, the second one's commit unseals to no value: it keeps its own.
        return [
            np.where(committed < given.question.k, committed.astype(np.int64), given.cells)
            for given, committed in zip(lookups, self._commit(proposed, period), strict=True)
        ]

    def _commit(self, proposed: Sequence[HeldEntries], period: int) -> list[Words]:
        """The words that count for the devices of each attribute: those committed before, else these."""
        return [word for some in _in_batches(proposed) for word in self._commit_together(some, period)]

    def _commit_together(self, proposed: Sequence[HeldEntries], period: int) -> list[Words]:
        prepared = []
        for one in proposed:
            placed = self._state.placed(one.devices)
            pads = self._sealer.commit_pads(one.question.name, one.devices[placed.order], period)
            sealed = (one.tags[placed.order] ^ pads)[placed.first]
            prepared.append((self._tables[one.question.name].name, placed, pads, sealed))

        def work() -> list[Words]:
            return together(
                self._state.epochs,
                [
                    self._state.commits(table, period).committing(placed.names, sealed)
                    for table, placed, _, sealed in prepared
                ],
            )

        counting = self._state.guarded(period, work)
        return [placed.restored(words ^ pads) for (_, placed, pads, _), words in zip(prepared, counting, strict=True)]

    def ledger(self, devices: Devices) -> Ledger:
        """What these devices have spent in this survey."""
        return read_ledger(self._state.link, self._sealer, self.record, devices)


def _in_batches(lookups: Sequence[Asked]) -> Iterator[list[Asked]]:
    """Neighbours together, as long as they have no more devices than fit into one batch."""
    some: list[Asked] = []
    for lookup in lookups:
        if some and sum(len(other.devices) for other in some) + len(lookup.devices) > CHUNK:
            yield some
            some = []
        some.append(lookup)
    if some:
        yield some


def _check_cells(question: Question, cells: Values, states: int) -> None:
    if len(cells) and not 0 <= cells.min() <= cells.max() < states:
        raise StoreError(
            f"a cell of {question.name!r} is not one of 0 to {states - 1}",
            "derive cells with Respondent.cells, from positions in the survey's list of values",
        )
