"""What one process knows of one survey in the store: epochs, watermark, period keys, and the commits of open periods.

Memos and presence both work through it. The watermark is how far the survey's time has come, as the store has seen it:
`advance` moves it before any work on a period. A period is closed at its end plus grace: by the wall clock, or, if the
survey has `clock: source`, when the watermark has advanced to a period that is late enough. Its commits are then
dropped. `guarded` repeats work after the store has lost data.
"""

from collections.abc import Callable
from datetime import datetime
from typing import ParamSpec, TypeVar

import numpy as np

from memo_store.connection.epochs import EpochLost, Epochs, Seen, script
from memo_store.connection.layout import Placed
from memo_store.connection.link import Link
from memo_store.period_keys import Forgetting, PeriodKeys
from memo_store.registry import AttributeTables, SurveyRecord, presence_table, register
from memo_store.sealing import Sealer
from memo_store.tables.memos import HELD_BYTES, HeldMemos
from memo_store.tables.period_commits import PeriodCommits, close_commits, period_closed
from protocols.arrays import Devices
from protocols.errors import HistoryLost, StoreUnavailable
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.survey import MICROSECOND, micros


def newest_period(link: Link, name: str) -> int:
    """The newest period that any device of a fleet has come to; -1: none. `name` is that of its presence table."""
    return int(link.ask("HGET", _key(name, "state"), "newest") or -1)


def _key(name: str, what: str) -> str:
    return f"hearsay:{{{name}}}:{what}"


T = TypeVar("T")
P = ParamSpec("P")
MOST_LOSSES = 3
"""How many losses of the store one piece of work is repeated after."""


class SurveyState:
    """One survey's state in the store."""

    def __init__(
        self,
        link: Link,
        respondent: Respondent,
        now: Callable[[], datetime],
        seen: Seen,
        forgetting: Forgetting | None,
    ) -> None:
        """`seen` is what an earlier process has seen of the store."""
        self.link = link
        self.scheme = scheme = respondent.scheme
        self.sealer = sealer = Sealer(respondent.keyring, scheme.survey.id, scheme.fingerprint)
        self.epochs = Epochs(link, seen)
        self.record = self._register(None)
        name, new = presence_table(sealer), not seen and self.epochs.confirmed
        self.keys = PeriodKeys(link, scheme.survey, sealer, _key(name, "state"), forgetting, new)
        self.respondent = respondent
        if forgetting is not None:
            self.respondent = Respondent(scheme, respondent.keyring, self.keys.ring)
        self.tables = {a.name: AttributeTables.of(sealer, self.record, a) for a in self.record.attributes}
        self._now = now
        self._watermark, self._open, self._lost_in = (_key(name, what) for what in ("state", "open", "lost"))
        self._losses: set[int] = set(map(int, link.ask("SMEMBERS", self._lost_in)))
        self._newest = 0
        self._commits: dict[tuple[str, int], PeriodCommits] = {}
        self._hold_nothing()
        self._seen_before = seen
        nobody = np.empty(0, dtype=np.uint64)
        self._placed = nobody, Placed.of(sealer.pseudonyms(nobody))
        self._lost = self.epochs.lost  # whether the store has lost data and this process has not recovered from it yet
        self.recoveries = 0
        """How often this process has recovered from a loss: what it wrote before may be gone."""

    @property
    def seen(self) -> Seen:
        """What a later process needs (`MemoStore.survey`) to notice a loss in between, or one not recorded here yet."""
        return self._seen_before if self._lost else self.epochs.seen

    def placed(self, devices: Devices) -> Placed:
        """Devices in the order of their pseudonyms. Those of the last call are remembered: a report has three steps."""
        if not np.array_equal(devices, self._placed[0]):
            self._placed = devices.copy(), Placed.of(self.sealer.pseudonyms(devices))
        return self._placed[1]

    @property
    def presence_losses(self) -> tuple[int, ...]:
        """The periods from which on earlier presence is unknown, ascending: a device last seen before looks new.

        A window that contains such a period and an earlier one may count a device twice.
        """
        return tuple(sorted(self._losses - {0}))

    def advance(self, period: int, closing: int = -1) -> int:
        """Advance to a period if it is later; drop the commits of closed periods. Returns the last closed period.

        Periods up to `closing` are closed in any case.
        """
        self._newest = max(self._newest, period)
        survey = self.scheme.survey
        calendar, by_source = survey.calendar, survey.clock == "source"
        time = calendar.begin(period) if by_source else micros(self._now())
        through = max(closing, calendar.closed(time, survey.grace))
        keys = self._watermark, self._open, self._lost_in
        answer = self.link.ask("EVAL", script("advance_watermark"), 3, *keys, period, through, int(by_source))
        losses, last_closed, *closed = answer
        self._losses.update(map(int, losses))
        if closed:
            dropped = close_commits([tables.commits for tables in self.tables.values()], closed)
            self.link.run([*dropped, ("SREM", self._open, *closed)], atomic=True)
        self._commits = {key: commits for key, commits in self._commits.items() if key[1] > int(last_closed)}
        return int(last_closed)

    def finish(self, period: int) -> None:
        """Say that periods up to this one are reported: forget the keys of those that ended long enough before.

        That is `forget_after` before the end of this one. They are closed first, because the commits of an open period
        show true values to whoever has the fleet's key.
        """
        if self.keys.forget_after is not None:
            calendar = self.scheme.survey.calendar
            before = calendar.end(period) - 1 - self.keys.forget_after // MICROSECOND
            through = calendar.closed(max(before, calendar.begin(0)))
            if through >= self.keys.first:
                self.advance(period, through)
                self.keys.forget(through)

    def require_open(self, period: int) -> None:
        """Advance the watermark to a period; raise StoreError if the period is closed."""
        if period <= self.advance(period):
            raise period_closed(self.scheme.survey.id, period)

    def commits(self, table: str, period: int) -> PeriodCommits:
        """The commits of an open period, as far as this process has read them. Use them in `guarded` work."""
        if (table, period) not in self._commits:
            self._commits[table, period] = PeriodCommits(self.epochs, self.scheme.survey.id, table, period)
        return self._commits[table, period]

    def sealer_of(self, period: int) -> Sealer:
        """What is committed in a period is sealed with: a key that is forgotten, if the survey has such keys."""
        if self.keys.forget_after is None:
            return self.sealer
        key = self.keys.of(period)
        return self.sealer if key.earlier else self.sealer.of_period(Keyring(key.key))

    def guarded(self, period: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the work. If the store has lost data, recover and do it again, unless the survey may not go on."""
        for _ in range(MOST_LOSSES):
            try:
                if self._lost:
                    self._recover(period)
                return work(*args, **kwargs)
            except EpochLost:
                self._lost = True
        raise StoreUnavailable(
            f"the memo store lost data {MOST_LOSSES} times during one operation",
            "check that no other client empties this Redis, and that it does not evict keys",
        )

    def _recover(self, period: int) -> None:
        """Continue with a store that was emptied or went back in time.

        Memos are derived again when they are looked up, committed ones too. The commits this process knows are written
        again, and so is the note of where period keys are. Presence is lost.

        Reports of this period, and of later open ones, may have been recorded before the loss. They are lost too, so
        each of these periods is a loss for the next one. The store has also lost its list of earlier losses; this
        process writes those it knows again.
        """
        import structlog  # takes time, and is seldom needed

        log = structlog.get_logger("memo_store")
        log.warning("the memo store has lost data", survey=self.scheme.survey.id, period=period)
        self.epochs.read()
        self.keys.restore()
        self._register(self.record)
        self._losses.update(range(period, max(period, self._newest) + 2))
        self.link.ask("SADD", self._lost_in, *sorted(self._losses))
        for (_, committed_in), commits in self._commits.items():
            self.advance(committed_in)
            commits.restore()
        self._hold_nothing()  # or the emptied store would not get them back, and its ledger would know nothing of them
        self._lost = False
        self.recoveries += 1

    def _hold_nothing(self) -> None:
        """Of each attribute, the memos that this process has looked up, since the store lost data if it did."""
        room = HELD_BYTES // max(len(self.tables), 1)
        self.held = {name: HeldMemos(tables.memos.memo_bytes, room) for name, tables in self.tables.items()}

    def _register(self, before: SurveyRecord | None) -> SurveyRecord:
        survey = self.scheme.survey
        record = register(self.link, self.scheme, self.sealer, before)
        if survey.memo_cap is not None and not self.epochs.confirmed:
            raise HistoryLost(
                f"survey {survey.id!r} has a cap of {survey.memo_cap} memoised values per attribute, and the history of"
                " this store is not confirmed: it is new, or it has lost data and does not know how many values devices"
                " have memoised",
                "if it is new, run `hearsay memo accept-loss --nothing-lost`; if you accept that devices may memoise "
                "up to their caps once more, run `hearsay memo accept-loss`",
            )
        return record
