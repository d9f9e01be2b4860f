"""A survey's watermark in the store: which periods are open, and in which ones presence was lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from memo_store.connection.epochs import script
from memo_store.connection.link import Link
from memo_store.tables.period_commits import close_commits
from protocols.survey import Survey, micros


def newest_period(link: Link, name: str) -> int:
    """The newest period that any device of a fleet has come to; -1: none. `name` is that of its presence table."""
    return int(link.ask("HGET", _key(name, "state"), "newest") or -1)


class Watermark:
    """How far a survey's time has come, as the store has seen it.

    A period is closed at its end plus grace: by the wall clock, or, if the survey has `clock: source`, when the
    watermark has advanced to a period that is late enough. Its commits are then dropped.
    """

    def __init__(
        self, link: Link, survey: Survey, name: str, tables: Sequence[str], now: Callable[[], datetime]
    ) -> None:
        """`tables` are those whose commits are dropped."""
        self._link = link
        self._survey = survey
        self._tables = tables
        self._now = now
        self._state, self._open, self._lost = (_key(name, what) for what in ("state", "open", "lost"))
        self._losses: set[int] = set(map(int, link.ask("SMEMBERS", self._lost)))
        self._newest = 0

    @property
    def losses(self) -> tuple[int, ...]:
        """The periods in which presence was lost, ascending: what was recorded before each of them is unknown."""
        return tuple(sorted(self._losses - {0}))

    def advance(self, period: int) -> int:
        """Advance to a period if it is later; drop the commits of closed periods. Returns the last closed period."""
        self._newest = max(self._newest, period)
        calendar, by_source = self._survey.calendar, self._survey.clock == "source"
        time = calendar.begin(period) if by_source else micros(self._now())
        through = calendar.closed(time, self._survey.grace)
        keys = (self._state, self._open, self._lost)
        answer = self._link.ask("EVAL", script("advance_watermark"), 3, *keys, period, through, int(by_source))
        losses, last_closed, *closing = answer
        self._losses.update(map(int, losses))
        if closing:
            self._link.run([*close_commits(self._tables, closing), ("SREM", self._open, *closing)], atomic=True)
        return int(last_closed)

    def record_loss(self, period: int) -> None:
        """Record that presence was lost, as noticed in this period.

        Reports of this period, and of later open ones, may have been recorded before the loss. They are lost too, so
        each of these periods is a loss for the next one. The store has also lost its list of earlier losses; this
        process writes those it knows again.
        """
        self._losses.update(range(period, max(period, self._newest) + 2))
        self._link.ask("SADD", self._lost, *sorted(self._losses))


def _key(name: str, what: str) -> str:
    return f"hearsay:{{{name}}}:{what}"
