"""One survey in the memo store: standing, memos, delivery.

The order of a report is: `standing` (may it be made, and with which gap), `lookup` per attribute (its memo, settled for
the period), the sink's confirmation, `delivered`. A crash between any two of these is repaired by doing it again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import ParamSpec, TypeVar

import numpy as np
import structlog
from numpy.typing import NDArray

from memo_store.connection.epochs import Call, History, Lost
from memo_store.connection.layout import CHUNK, Bytes, Placed, Words
from memo_store.connection.link import Link
from memo_store.ledger import Ledger, read_ledger
from memo_store.periods import Calendar
from memo_store.registry import SurveyTerms, memo_table, presence_table, register
from memo_store.sealing import Veil
from memo_store.tables.fleet_presence import Roll
from memo_store.tables.memos import MemoTable
from memo_store.tables.period_journal import Journal
from memo_store.tables.presence import Standing, standing
from protocols.arrays import Column
from protocols.errors import HistoryLost, StoreError, StoreUnavailable
from protocols.mechanisms import Values
from protocols.question import Question
from protocols.randomness import Devices
from protocols.respondent import Respondent

T = TypeVar("T")
P = ParamSpec("P")
LOSSES = 3
"""How often a store may lose its past during one batch before we stop believing in it."""
log = structlog.get_logger("memo_store")


class SurveyMemos:
    """The memos, presences and spending of one survey's devices, for one thread; any number of processes may share a
    store."""

    def __init__(self, link: Link, respondent: Respondent, now: Callable[[], datetime]) -> None:
        self.respondent = respondent
        self._survey = respondent.scheme.survey
        self._link = link
        self._veil = Veil(respondent.keyring, self._survey.id)
        self._history = History(link)
        self.terms = self._register()
        self._presence = presence_table(self._veil)
        self._tables = {a.name: memo_table(self._veil, self.terms, a) for a in self.terms.attributes}
        self._calendar = Calendar(link, self._survey, self._presence.name, now)
        self._journals: dict[tuple[str, int], Journal] = {}
        self._lost = False  # whether the store has lost its past, and this survey has not yet been let on

    @property
    def presence_losses(self) -> tuple[int, ...]:
        """The periods in which presence began anew, ascending: who was last seen earlier looks as if never there.

        A window that reaches from before such a period into it may count a device twice.
        """
        return self._calendar.losses

    def standing(self, devices: Devices, period: int) -> Standing:
        """For each device: the gap its report of this period must carry, and whether it may make one."""
        over = self._reach(period)
        last = self._guarded(period, self._last, self._placed(devices))
        return standing(last, period, over, self._survey.horizon)

    def lookup(self, question: Question, devices: Devices, values: Values, period: int) -> Column:
        """Each device's memo for its value: found, or created, or at the cap the last one created.

        The period's value is settled here: a device that was looked up in this period before gets the memo of the
        value it had then.
        """
        if not self._survey.longitudinal:
            raise StoreError(f"survey {self._survey.id!r} is one-shot and memoises nothing", "use settle instead")
        self._enter(question, values, period)
        table, layout = self._tables[question.name], question.mechanism.encoding.memo
        placed = self._placed(devices)
        cells = self.respondent.cells(question, devices, values)[placed.order]
        devices = devices[placed.order]
        states = question.mechanism.encoding.states
        cells = self._guarded(period, self._settle, question, placed, devices, cells, states, period)
        found, tags, sealed = self._read(table, placed, self._veil.tags(question.name, devices, cells))
        missing = np.flatnonzero(~found)
        for first in range(0, len(missing), CHUNK):
            rows = missing[first : first + CHUNK]
            tags[rows], sealed[rows] = self._guarded(
                period, self._create, question, placed.part(rows), devices[rows], cells[rows], tags[rows]
            )
        memos = sealed ^ self._veil.pads(question.name, devices, tags, table.memo_bytes)
        return placed.restored(layout.from_bytes(memos))

    def settle(self, question: Question, devices: Devices, values: Values, period: int) -> Values:
        """For one-shot surveys: each device's value of this period, which is the one it was first asked with."""
        self._enter(question, values, period)
        placed = self._placed(devices)
        devices, values = devices[placed.order], values[placed.order]
        return placed.restored(
            self._guarded(period, self._settle, question, placed, devices, values, question.k, period)
        )

    def delivered(self, devices: Devices, period: int) -> None:
        """Record that the reports of this period have arrived; saying it twice changes nothing."""
        placed = self._placed(devices)
        for rows in placed.slices(CHUNK):
            self._guarded(period, self._history.run, self._presence.deliver(placed.part(rows), period))

    def roll(self, devices: int) -> Roll:
        """Presence for a fleet whose devices are numbered from 0 to `devices` - 1, in place of ours: far cheaper."""
        horizon = self._survey.horizon
        return Roll(self._link, self._history, self._veil, devices, horizon, self._reach, self._guarded)

    def ledger(self, devices: Devices) -> Ledger:
        """What these devices have spent in this survey."""
        return read_ledger(self._link, self._veil, self.terms, devices)

    def _last(self, placed: Placed) -> NDArray[np.int64]:
        answers = [
            answer for rows in placed.slices(CHUNK) for answer in self._link.run(self._presence.read(placed.part(rows)))
        ]
        self._history.recognise(self._link.run(self._history.check()))
        return placed.restored(self._presence.parse(answers)[0])

    def _read(self, table: MemoTable, placed: Placed, tags: Words) -> tuple[NDArray[np.bool_], Words, Bytes]:
        """Which devices have their memo (or are held), its tag and the sealed memo."""
        picked = [
            table.pick(self._link.run(table.read(placed.part(rows))), tags[rows]) for rows in placed.slices(CHUNK)
        ]
        found, tags, sealed = (np.concatenate(column) for column in zip(*picked, strict=True))
        return found, tags, sealed

    def _create(
        self, question: Question, placed: Placed, devices: Devices, cells: Values, tags: Words
    ) -> tuple[Words, Bytes]:
        """Propose the derived memos; what counts afterwards may be another's, or at the cap an older one."""
        table, layout = self._tables[question.name], question.mechanism.encoding.memo
        memos = layout.to_bytes(self.respondent.memoise(question, devices, cells))
        sealed = memos ^ self._veil.pads(question.name, devices, tags, table.memo_bytes)
        return table.overrule(placed, tags, sealed, self._history.run(table.propose(placed, tags, sealed)))

    def _settle(
        self, question: Question, placed: Placed, devices: Devices, cells: Values, states: int, period: int
    ) -> Values:
        """The cells that count in this period: those that were settled before, and these for everybody else."""
        journal = self._journals.setdefault((question.name, period), Journal(self._tables[question.name].name, period))
        pads = self._veil.settling_pads(question.name, devices, period)
        proposed = (cells.astype(np.uint64) ^ pads)[placed.first]
        accepted = False
        while not accepted:
            known, sealed = journal.find(placed.names)
            accepted = self._write(journal, journal.propose(placed.names[~known], proposed[~known]), period)
        opened = np.where(known, sealed, proposed) ^ pads
        # Names are 8 bytes. Should two devices ever share one, the second opens to nonsense and keeps its own cell.
        return np.where(opened < states, opened.astype(np.int64), cells)

    def _write(self, journal: Journal, calls: list[Call], period: int) -> bool:
        """Whether the journal took all of it; if not, it has told us what we had not read."""
        unread = [text for (text,) in self._history.run(calls)]
        if None in unread:
            raise self._over(period)
        journal.learn(calls, unread)
        return not any(unread)

    def _placed(self, devices: Devices) -> Placed:
        return Placed.of(self._veil.pseudonyms(devices))

    @property
    def _table_names(self) -> list[str]:
        return [table.name for table in self._tables.values()]

    def _reach(self, period: int) -> int:
        """Come to a period; forget the journals of those that are over. Returns the last one that is."""
        over = self._calendar.reach(period, self._table_names)
        self._journals = {key: journal for key, journal in self._journals.items() if key[1] > over}
        return over

    def _enter(self, question: Question, values: Values, period: int) -> None:
        """Come to a period with these values, if both are possible."""
        if len(values) and not 0 <= values.min() <= values.max() < question.k:
            raise StoreError(
                f"a value of {question.name!r} is not one of 0 to {question.k - 1}",
                "give each value by its place in the survey's list",
            )
        if period <= self._reach(period):
            raise self._over(period)

    def _over(self, period: int) -> StoreError:
        return StoreError(f"period {period} of survey {self._survey.id!r} is over", "go on with a later one")

    def _guarded(self, period: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do it; should the store have lost its past, see whether this survey may go on, and do it again."""
        for _ in range(LOSSES):
            try:
                if self._lost:
                    self._meet_again(period)
                return work(*args, **kwargs)
            except Lost:
                self._lost = True
        raise StoreUnavailable(
            "the store keeps losing what it is told", "see that nobody empties it, and that it does not evict"
        )

    def _meet_again(self, period: int) -> None:
        """The store was emptied or went back in time. Memos come back by themselves; what else was there is gone."""
        log.warning("the memo store has lost its past", survey=self._survey.id, period=period)
        self._history.meet()
        self._register()
        self._calendar.lose(period)
        for (_, when), journal in self._journals.items():
            self._calendar.reach(when, self._table_names)
            journal.restart()
            while not self._write(journal, journal.restate(), when):
                pass  # somebody else has written to it too
        self._lost = False

    def _register(self) -> SurveyTerms:
        terms = register(self._link, self.respondent.scheme, self._veil)
        if self._survey.memo_cap is not None and not self._history.whole:
            raise HistoryLost(
                f"survey {self._survey.id!r} lets a device memoise {self._survey.memo_cap} values per attribute, and "
                "this store cannot say what devices were permitted: it is new, or it has lost its history",
                "if it is new, or if you accept that devices may reach their caps once more, "
                "run `hearsay memo accept-loss`",
            )
        return terms
