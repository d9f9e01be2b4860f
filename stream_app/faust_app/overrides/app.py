"""Faust's app, with our consumer and producer in the place of its own.

The consumer has less work for each record and less waiting. Faust's cost is per message, so the records of a partition
that were fetched together travel as one message. Faust stops fetching from partitions whose queue is full, and starts
again late or never; here the reader waits until the queue has room.

The producer is idempotent, without a limit on how long it retries. A record that is too large fails alone.
"""

import asyncio
import logging
import math
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

import faust
import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.errors import ConsumerStoppedError, IllegalStateError, MessageSizeTooLargeError, RecordListTooLargeError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Producer, Transport
from faust.types import TP

from stream_app.faust_app.crash import EXIT, fatal

TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
"""What a broker says of a batch that is larger than its topic, or it, allows."""
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
LEAVE_SECONDS = 10.0
"""How long leaving may take, with the broker away for instance, before the process ends anyway."""

log = structlog.get_logger(__name__)


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


class RetryingProducer(Producer):
    """Faust's producer; a retry is never a second record, and records wait for as long as the broker is unavailable."""

    logger = logging.getLogger("faust.producer")

    def _settings_extra(self) -> dict[str, Any]:
        return {"enable_idempotence": True}

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        producer = super()._new_producer(transactional_id)
        accumulator = producer._message_accumulator
        accumulator._batch_ttl = math.inf
        accumulator._append_batch = partial(_append_batch, accumulator, accumulator._append_batch)
        return producer


def _append_batch(accumulator: Any, append: Callable[..., Any], builder: Any, tp: Any) -> Any:
    """A new batch. Of one that the broker refuses as too large, the next batch takes the sequence numbers.

    Without this, the broker would miss them, and refuse whatever came after.
    """
    batch = append(builder, tp)
    fail = batch.failure

    def failure(exception: BaseException) -> None:
        if isinstance(exception, TOO_LARGE) and accumulator._txn_manager is not None:
            accumulator._txn_manager.increment_sequence_number(tp, -batch.record_count)
        fail(exception)

    batch.failure = failure
    return batch


class BatchTransport(Transport):
    """Faust's transport, with our consumer and producer."""

    Consumer = BatchConsumer
    Producer = RetryingProducer


class FaustApp(faust.App):
    """An app that reads in batches and writes idempotently. `start` is called before partitions are assigned."""

    logger = logging.getLogger("faust.app")

    def __init__(self, name: str, settings: Mapping[str, Any], start: Callable[[], Awaitable[None]]) -> None:
        super().__init__(name, **settings)
        self._start_ours = start
        self.transport = BatchTransport(self.conf.broker_consumer, self)

    @property
    def batch_consumer(self) -> BatchConsumer:
        return cast(BatchConsumer, self.consumer)

    async def start(self) -> None:
        """Start everything. Without a broker, Faust would end as if it had been told to leave, and be left alone."""
        with fatal("starting"):
            await super().start()

    async def on_start(self) -> None:
        await super().on_start()
        await self._start_ours()

    async def on_stop(self) -> None:
        """Leave the group and close connections: Faust would wait for a broker without end."""
        log.info("leaving")
        deadline = threading.Timer(LEAVE_SECONDS, os._exit, [EXIT if self.crashed else 0])
        deadline.daemon = True
        deadline.start()
        await super().on_stop()

    def _create_directories(self) -> None:
        """Faust would make a data directory, but nothing is kept on this machine."""
