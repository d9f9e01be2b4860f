"""Which periods of a survey are open in the store, and since when presence is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from math import ceil

from memo_store.history import script
from memo_store.layout import SHARDS
from memo_store.link import Link
from memo_store.settlement import journal_key
from protocols.survey import Survey


class Calendar:
    """A survey's time, as far as the store sees it.

    A period is over at its end plus grace: by the clock on the wall, or, where the source tells the time, when somebody
    has come to a period that is so much later. What was settled in it is then dropped.
    """

    def __init__(self, link: Link, survey: Survey, table: str, now: Callable[[], datetime]) -> None:
        self._link = link
        self._survey = survey
        self._now = now
        self._state, self._open = f"hearsay:{{{table}}}:state", f"hearsay:{{{table}}}:open"
        self.since = int(link.ask("HGET", self._state, "since") or 0)

    def reach(self, period: int, tables: Sequence[str]) -> int:
        """Come to a period, and drop the journals of those that are over. Returns the last one that is."""
        lag = 1 + ceil(self._survey.grace / self._survey.period)
        by_the_wall = (
            "" if self._survey.clock == "source" else self._survey.period_of(self._now() - self._survey.grace) - 1
        )
        self.since, over, *ended = self._link.ask(
            "EVAL", script("reach"), 2, self._state, self._open, period, lag, by_the_wall
        )
        if ended:
            keys = [journal_key(table, shard, p) for table in tables for shard in range(SHARDS) for p in ended]
            self._link.run([*(("UNLINK", key) for key in keys), ("SREM", self._open, *ended)], atomic=True)
        return int(over)

    def lose(self, period: int) -> None:
        """Presence before this period is gone."""
        self._link.ask("HSET", self._state, "since", period)
        self.since = period
