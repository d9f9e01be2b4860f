"""Faust's consumer, with less work for each record and less waiting.

Faust's cost is per message, so the records of a partition that were fetched together travel as one message. Changelog
records go directly into their table. Faust stops fetching from partitions whose queue is full, and starts again late or
never; here the reader waits until the queue has room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.errors import ConsumerStoppedError, IllegalStateError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP

from stream_app.faust_app.broker.retrying import retry_while_unavailable
from stream_app.faust_app.overrides.gathering import FEW_BYTES, Gathering
from stream_app.faust_app.overrides.recovery import StateRecovery

READ_SECONDS = 0.25
"""How long to wait for records before checking whether to stop or to pause."""
IDLE_SECONDS = 0.05
"""How long to wait before checking again whether there are partitions to read."""
FULL_SECONDS = 0.002
"""How long to wait before checking again whether a queue has room."""
LONG_POLL_SECONDS = 0.1
"""How long a broker may hold back a fetch without records: other requests on the connection wait as long."""

FETCH_BYTES = FEW_BYTES
"""A broker holds a fetch back until it has so much: reports that trickle come together, which costs less."""


class ShortPollThread(AIOKafkaConsumerThread):
    """Faust's consumer thread, with short polls, and retries if no broker is available when it starts."""

    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = int(LONG_POLL_SECONDS * 1000)
        consumer._fetch_min_bytes = FETCH_BYTES
        cast(Any, consumer).start = partial(retry_while_unavailable, consumer.start)
        return consumer

    def hold_back(self, seconds: float) -> None:
        """Let brokers hold back the next fetches for so long, if there are few records."""
        if self._consumer is not None and self._consumer._fetcher is not None:
            self._consumer._fetcher._fetch_max_wait_ms = int(seconds * 1000)

    async def _seek_wait(self, consumer: AIOKafkaConsumer, partitions: Mapping[TP, int]) -> None:
        """Seek only partitions that are elsewhere: seeking discards what was fetched ahead."""
        elsewhere = {tp: offset for tp, offset in partitions.items() if _position(consumer, tp) != offset}
        await super()._seek_wait(consumer, elsewhere)


def _position(consumer: AIOKafkaConsumer, tp: TP) -> int | None:
    """The next offset of a partition, if it is known without a request to the broker."""
    if tp not in consumer.assignment():
        return None
    state = consumer._subscription.subscription.assignment.state_value(tp)
    return state.position if state.has_valid_position else None


class BatchConsumer(Consumer):
    """Delivers records in batches: the value of a message is the records of one partition from one fetch."""

    logger = logging.getLogger("faust.consumer")
    _fetch: asyncio.Future[Any] | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._gathering = Gathering()

    def _new_consumer_thread(self) -> ShortPollThread:
        return ShortPollThread(self, loop=self.loop, beacon=self.beacon)

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        ends: Mapping[TP, int] = await cast(Any, self.app).offsets.ends(partitions)
        return ends

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        begins: Mapping[TP, int] = await cast(Any, self.app).offsets.begins(partitions)
        return begins

    def end_of(self, tp: TP) -> int:
        """The offset that the next record of a partition will have, as far as is known; 0 if it is not ours."""
        return (self.highwater(tp) or 0) if tp in self.assignment() else 0

    async def commit_offsets(self, offsets: Mapping[TP, int]) -> None:
        """Set the group's offsets of the partitions that are still ours, also to lower ones than before.

        Faust's own commit only follows the messages that were acknowledged to it, and ours are not.
        """
        assigned = self.assignment()
        still_ours = {tp: offset for tp, offset in offsets.items() if tp in assigned}
        if still_ours:
            await self._commit(still_ours)

    async def read_from(self, offsets: Mapping[TP, int]) -> bool:
        """Read on at these offsets, whatever the group's were. False if a partition is no longer ours."""
        try:
            await self.commit_offsets(offsets)
            if offsets:
                await self.seek_wait(offsets)
        except IllegalStateError:
            return False
        return True

    async def read_again(self, tp: TP, offset: int) -> None:
        """Go back to an offset of a partition, if that is still ours."""
        with suppress(IllegalStateError):
            self.resume_partitions({tp})
            await self.seek_wait({tp: offset})

    async def quiesce(self) -> None:
        """Stop delivering records, and wait for the end of the fetch in progress. `resume_flow` ends this state.

        A fetch that began before a rebalance may still be in progress after it, and what it returns is dropped. If it
        took records from after a seek, those would be lost: so call this before a seek that must miss nothing.
        """
        self.stop_flow()
        if self._fetch is not None:
            await asyncio.wait([self._fetch])

    async def _drain_messages(self, fetcher: Any) -> None:
        """Fetch and deliver until the consumer or its fetcher stops. Called, and cancelled, by Faust."""
        try:
            while not (self.should_stop or fetcher.should_stop):
                generation = self.app.consumer_generation_id
                records = await self._next_records()
                for tp, batch in records.items():
                    await self._deliver(TP(*tp), batch, generation)
                await self._gather_next(records)
        except (asyncio.CancelledError, ConsumerStoppedError):
            if not self.app.should_stop:
                raise

    async def _gather_next(self, records: Mapping[TP, Sequence[ConsumerRecord]]) -> None:
        """After few records, take no more for a while, and let brokers hold back the next fetch as long.

        Not after records of a changelog: others wait for a recovery.
        """
        recovers = any(self._is_changelog_tp(TP(*tp)) for tp in records)
        size = sum(len(record.value or b"") for batch in records.values() for record in batch)
        seconds = self._gathering.after(few=bool(records) and not recovers and size < FEW_BYTES)
        cast(ShortPollThread, self._thread).hold_back(max(seconds, LONG_POLL_SECONDS))
        await asyncio.sleep(seconds)

    async def _next_records(self) -> Mapping[TP, Sequence[ConsumerRecord]]:
        """The next records of the partitions that are not paused; none if there is no such partition, or no record."""
        active = frozenset(self._get_active_partitions()) if self.flow_active else frozenset()
        if not active:  # to aiokafka, a fetch from no partitions is a fetch from all
            await asyncio.sleep(IDLE_SECONDS)
            return {}
        self._fetch = asyncio.ensure_future(self._getmany(cast(set[TP], active), READ_SECONDS))
        records: Mapping[TP, Sequence[ConsumerRecord]] = await self._fetch
        return records

    async def _deliver(self, tp: TP, records: Sequence[ConsumerRecord], generation: int) -> None:
        """Give records to the recovery of their table or to their agent; drop those of an assignment that has ended."""
        if self._is_changelog_tp(tp):
            if self._is_current(generation):
                cast(StateRecovery, cast(Any, self.app.tables).recovery).apply_changelog(tp, records, generation)
            return
        for queue in self._queues(tp):
            while queue.full() and self._is_current(generation):
                await asyncio.sleep(FULL_SECONDS)
            if self._is_current(generation):
                message = self._to_message(tp, records[0])
                message.value = cast(Any, records)
                queue.put_nowait(self.app.create_event(None, records, None, message))

    def _is_current(self, generation: int) -> bool:
        return self.flow_active and self.app.consumer_generation_id == generation

    def _queues(self, tp: TP) -> Iterator[asyncio.Queue[Any]]:
        return (channel.queue for channel in list(cast(Any, self.app.topics)._tp_index[tp]))


class BatchTransport(Transport):
    """Faust's transport, with our consumer."""

    Consumer = BatchConsumer
