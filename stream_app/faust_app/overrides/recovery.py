"""Faust's table recovery, with its end put right.

The task that reads the changelogs announces the end by an event, and clears the event before its next read. Whoever
waits for it comes too late when the last records arrive quickly, and is told five seconds later: here it stays.

Faust then lets records flow in, seeks, and empties its queues, which loses what came in between. Here, sources are
resumed last. And changelog records are taken as they are fetched, many at a time and without a queue in which those of
an earlier recovery could be left over; before its seek nobody reads, and nothing is taken.

When the broker is away for long, Faust takes its recovery for stopped, and never recovers again. Here, it waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from aiokafka import ConsumerRecord
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.types import TP

from stream_app.faust_app.overrides.table import StateTable


class Announcement(asyncio.Event):
    """Stays until it is taken back."""

    def clear(self) -> None:
        pass

    def take_back(self) -> None:
        super().clear()


class OrderlyRecovery(Recovery):
    """Announces its end until the next recovery starts, and lets nothing in before everything is in place."""

    logger = logging.getLogger("faust.tables")

    def __post_init__(self) -> None:
        self._announcement = Announcement()
        self._taking = -1  # the generation whose seek is done

    @property
    def signal_recovery_end(self) -> Announcement:
        return self._announcement

    def _set_recovery_started(self) -> None:
        super()._set_recovery_started()
        self._announcement.take_back()

    async def _wait(self, coro: Any, timeout: Any = None) -> None:
        """For as long as it takes, or until partitions are assigned anew."""
        await super()._wait(coro)

    async def _seek_offsets(self, consumer: Any, tps: set[TP], offsets: Counter[TP], title: str) -> None:
        """To where each changelog is read from: all of it from there, none of it before."""
        generation = self._generation_id
        await consumer.stand_still()
        await super()._seek_offsets(consumer, tps, offsets, title)
        self._taking = generation

    def take(self, tp: TP, records: Sequence[ConsumerRecord], generation: int) -> None:
        """Changelog records of one partition, in order, as they were fetched."""
        if tp not in self.active_tps or generation != self._taking:
            return
        table, known = cast(StateTable, self.tp_to_table[tp]), self.active_offsets[tp]
        for record in records:
            if known is None or record.offset > known:
                table.keep(record.key, record.value)
        self.active_offsets[tp] = max(records[-1].offset, -1 if known is None else known)
        if self.in_recovery and not self.need_recovery():
            self._set_recovery_ended()
            self._announcement.set()

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """The tables are up to date: tell them, which sets the offsets to read on from, and let the sources flow."""
        app: Any = self.app
        await app.on_rebalance_complete.send()
        self._set_recovery_ended()
        app.flow_control.resume()
        app.consumer.resume_flow()
        tables = list(self.tables.values())
        await asyncio.gather(
            *(t.on_recovery_completed(self.actives_for_table[t], self.standbys_for_table[t]) for t in tables)
        )
        if app.consumer_generation_id != generation_id:
            return  # another rebalance has begun: another recovery follows
        app.consumer.resume_partitions({tp for tp in app.consumer.assignment() if not self._is_changelog_tp(tp)})
        self.completed.set()
        await app._fetcher.maybe_start()
        self.tables.on_actives_ready()
        self.tables.on_standbys_ready()
        app.on_rebalance_end()


class OrderlyTables(TableManager):
    """Recovers its tables in an orderly way."""

    logger = logging.getLogger("faust.tables")

    @property
    def recovery(self) -> Recovery:
        if self._recovery is None:
            self._recovery = OrderlyRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery
