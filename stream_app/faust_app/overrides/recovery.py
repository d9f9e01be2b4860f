"""Faust's table recovery, with four faults corrected.

- Faust's task that reads the changelogs signals the end of recovery by an event, and clears the event before its next
  read. If the last records arrive quickly, the event is cleared before it is noticed, and recovery ends five seconds
  late. Here the event stays set until the next recovery starts.
- At the end of recovery, Faust resumes the sources, then seeks and empties its queues: what arrived in between is lost.
  Here sources are resumed last.
- Faust's changelog records pass through a queue, where some of an earlier recovery may be left. Here they are applied
  as they are fetched, many at a time, and only after the seek of the present recovery, during which nothing is fetched.
- If the broker is unavailable for long, Faust's recovery times out, stops, and never recovers again. Here it waits.
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

from protocols.errors import StateError
from stream_app.faust_app.crash import fatal
from stream_app.faust_app.overrides.batches import SkippedRecords, last_offset
from stream_app.faust_app.overrides.table import StateTable
from stream_app.log.skipped import Why


class LatchedEvent(asyncio.Event):
    """An event that stays set until `reset`: Faust's calls of `clear` have no effect."""

    def clear(self) -> None:
        pass

    def reset(self) -> None:
        super().clear()


class StateRecovery(Recovery):
    """Signals its end until the next recovery starts, and resumes sources only when tables and offsets are in place."""

    logger = logging.getLogger("faust.tables")

    def __post_init__(self) -> None:
        self._end_signal = LatchedEvent()
        self._accepted_generation = -1  # the consumer generation whose seek is done

    @property
    def signal_recovery_end(self) -> LatchedEvent:
        return self._end_signal

    def _set_recovery_started(self) -> None:
        super()._set_recovery_started()
        self._end_signal.reset()

    async def _wait(self, coro: Any, timeout: Any = None) -> None:
        """Wait without a time-out, until it is done or the next recovery starts."""
        await super()._wait(coro)

    async def _seek_offsets(self, consumer: Any, tps: set[TP], offsets: Counter[TP], title: str) -> None:
        """Seek each changelog to where it is read from, while nothing is fetched; accept records only from then on."""
        generation = self._generation_id
        await consumer.quiesce()
        await super()._seek_offsets(consumer, tps, offsets, title)
        self._accepted_generation = generation

    def apply_changelog(self, tp: TP, records: Sequence[ConsumerRecord], generation: int) -> None:
        """Apply changelog records of one partition, which come in order, to its table."""
        if tp not in self.active_tps or generation != self._accepted_generation:
            return
        table, known = cast(StateTable, self.tp_to_table[tp]), self.active_offsets[tp]
        for record in records:
            if isinstance(record, SkippedRecords):
                _check_skipped(record)
            elif known is None or record.offset > known:
                table.put(record.key, record.value)
        self.active_offsets[tp] = max(last_offset(records[-1]), -1 if known is None else known)
        if self.in_recovery and not self.need_recovery():
            self._set_recovery_ended()
            self._end_signal.set()

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Let the tables set the offsets to read on from, now that they are up to date; then resume the sources."""
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


def _check_skipped(skipped: SkippedRecords) -> None:
    """A changelog is compacted, so it lacks records; but one that is there and cannot be read ends the process."""
    if skipped.why not in (Why.ABSENT, Why.MARKER):
        with fatal(f"recovering {skipped.topic}"):
            raise StateError(
                f"{skipped.topic}, partition {skipped.partition}: the batch with the records {skipped.offset} to "
                f"{skipped.last} cannot be read ({skipped.why.value})",
                "only workers may write to changelogs",
            )


class StateTableManager(TableManager):
    """Faust's table manager, with our recovery."""

    logger = logging.getLogger("faust.tables")

    @property
    def recovery(self) -> Recovery:
        if self._recovery is None:
            self._recovery = StateRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery
