"""Faust's app, with our consumer and producer in the place of its own.

The producer is idempotent, without a limit on how long it retries. A record that is too large fails alone.
"""

import logging
import math
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

import faust
import structlog
from aiokafka.errors import MessageSizeTooLargeError, RecordListTooLargeError
from faust.transport.drivers.aiokafka import Producer, Transport

from stream_app.faust_app.crash import EXIT
from stream_app.faust_app.overrides.consumer import BatchConsumer

TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
"""What a broker says of a batch that is larger than its topic, or it, allows."""
LEAVE_SECONDS = 10.0
"""How long leaving may take, with the broker away for instance, before the process ends anyway."""

log = structlog.get_logger(__name__)


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
