"""Faust's consumer, with less work for each record and less waiting.

Faust's cost is per message, so the records of a partition that were fetched together travel as one message. Faust stops
fetching from partitions whose queue is full, and starts again late or never; here the reader waits until the queue has
room.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.errors import ConsumerStoppedError, IllegalStateError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from faust.types import TP

READ_SECONDS = 0.25
"""How long to wait for records before checking whether to stop or to pause."""
IDLE_SECONDS = 0.05
"""How long to wait before checking again whether there are partitions to read."""
FULL_SECONDS = 0.002
"""How long to wait before checking again whether a queue has room."""
LONG_POLL_SECONDS = 0.1
"""How long a broker may hold back a fetch without records: fetches of other partitions from it wait as long."""
FEW_BYTES = 64 << 10
"""After less than this much ..."""
GATHER_SECONDS = 0.25
"""... the next records are taken only after so long: to wake up costs more than to count a report."""


class ShortPollThread(AIOKafkaConsumerThread):
    """Faust's consumer thread, with short polls."""

    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = int(LONG_POLL_SECONDS * 1000)
        return consumer


class BatchConsumer(Consumer):
    """Delivers records in batches: the value of a message is the records of one partition from one fetch."""

    logger = logging.getLogger("faust.consumer")

    def _new_consumer_thread(self) -> ShortPollThread:
        return ShortPollThread(self, loop=self.loop, beacon=self.beacon)

    async def perform_seek(self) -> None:
        """Faust seeks to the group's offsets after a rebalance. Ours are in the state: see `read_from`."""

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
        """Read on at these offsets, whatever the group's are. False if a partition is no longer ours."""
        try:
            await self.seek_wait(offsets)
        except IllegalStateError:
            return False
        return True

    async def read_again(self, tp: TP, offset: int) -> None:
        """Go back to an offset of a partition, if that is still ours."""
        with suppress(IllegalStateError):
            self.resume_partitions({tp})
            await self.seek_wait({tp: offset})

    async def _drain_messages(self, fetcher: Any) -> None:
        """Fetch and deliver until the consumer or its fetcher stops. Called, and cancelled, by Faust."""
        try:
            while not (self.should_stop or fetcher.should_stop):
                generation = self.app.consumer_generation_id
                records = await self._next_records()
                for tp, batch in records.items():
                    await self._deliver(TP(*tp), batch, generation)
                size = sum(len(record.value or b"") for batch in records.values() for record in batch)
                await asyncio.sleep(GATHER_SECONDS if records and size < FEW_BYTES else 0)
        except (asyncio.CancelledError, ConsumerStoppedError):
            if not self.app.should_stop:
                raise

    async def _next_records(self) -> Mapping[TP, Sequence[ConsumerRecord]]:
        """The next records of the partitions that are not paused; none if there is no such partition, or no record."""
        active = set(self._get_active_partitions()) if self.flow_active else set()
        if not active:  # to aiokafka, a fetch from no partitions is a fetch from all
            await asyncio.sleep(IDLE_SECONDS)
            return {}
        return await self._getmany(active, READ_SECONDS)

    async def _deliver(self, tp: TP, records: Sequence[ConsumerRecord], generation: int) -> None:
        """Give records to their agent; drop those of an assignment that has ended."""
        for channel in list(cast(Any, self.app.topics)._tp_index[tp]):
            queue = channel.queue
            while queue.full() and self._is_current(generation):
                await asyncio.sleep(FULL_SECONDS)
            if self._is_current(generation):
                message = self._to_message(tp, records[0])
                message.value = cast(Any, records)
                queue.put_nowait(self.app.create_event(None, records, None, message))

    def _is_current(self, generation: int) -> bool:
        return self.flow_active and self.app.consumer_generation_id == generation
