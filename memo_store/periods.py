"""Which periods of a survey are open in the store, and when presence was lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from math import ceil

from memo_store.connection.epochs import script
from memo_store.connection.link import Link
from memo_store.tables.period_journal import end_journals
from protocols.survey import Survey


class Calendar:
    """A survey's time, as far as the store sees it.

    A period is over at its end plus grace: by the clock on the wall, or, where the source tells the time, when somebody
    has come to a period that is so much later. What was settled in it is then dropped.
    """

    def __init__(
        self, link: Link, survey: Survey, name: str, tables: Sequence[str], now: Callable[[], datetime]
    ) -> None:
        self._link = link
        self._survey = survey
        self._tables = tables
        self._now = now
        self._state, self._open, self._lost = (f"hearsay:{{{name}}}:{what}" for what in ("state", "open", "lost"))
        self._losses: set[int] = set(map(int, link.ask("SMEMBERS", self._lost)))
        self._newest = 0

    @property
    def losses(self) -> tuple[int, ...]:
        """In each of these periods, who had been seen before was not known any more."""
        return tuple(sorted(self._losses - {0}))

    def reach(self, period: int) -> int:
        """Come to a period, and drop the journals of those that are over. Returns the last one that is."""
        self._newest = max(self._newest, period)
        lag = 1 + ceil(self._survey.grace / self._survey.period)
        by_the_wall = (
            "" if self._survey.clock == "source" else self._survey.period_of(self._now() - self._survey.grace) - 1
        )
        losses, over, *ended = self._link.ask(
            "EVAL", script("reach"), 3, self._state, self._open, self._lost, period, lag, by_the_wall
        )
        self._losses.update(map(int, losses))
        if ended:
            dropped = [command for table in self._tables for p in ended for command in end_journals(table, p)]
            self._link.run([*dropped, ("SREM", self._open, *ended)], atomic=True)
        return int(over)

    def lose(self, period: int) -> None:
        """What the store knew of presence is gone, as we notice in this period.

        Reports of this period, and of later ones that are open, may have been recorded before: they are forgotten too,
        so each of these periods is lost for the next. So is what the store knew of earlier losses, but we know them.
        """
        self._losses.update(range(period, max(period, self._newest) + 2))
        self._link.ask("SADD", self._lost, *sorted(self._losses))
