"""Faust's producer, idempotent, without a limit on how long it retries. A record that is too large fails alone."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiokafka.errors import MessageSizeTooLargeError, RecordListTooLargeError
from faust.exceptions import ProducerSendError
from faust.transport.drivers.aiokafka import Producer

from stream_app.faust_app.broker.retrying import retry_while_unavailable

TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
"""What a broker says of a batch that is larger than its topic, or it, allows; and aiokafka of a record."""


class RetryingProducer(Producer):
    """Faust's producer; a retry is never a second record, and records wait for as long as the broker is unavailable."""

    logger = logging.getLogger("faust.producer")

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: Any,
        *,
        transactional_id: str | None = None,
    ) -> Awaitable[Any]:
        """As Faust's. What aiokafka refuses as too large is returned as failed, like what a broker refuses."""
        try:
            confirmation: Awaitable[Any] = await super().send(
                topic, key, value, partition, timestamp, headers, transactional_id=transactional_id
            )
        except ProducerSendError as error:
            if not isinstance(error.__cause__, TOO_LARGE):
                raise
            refused = asyncio.get_running_loop().create_future()
            refused.set_exception(error.__cause__)
            return refused
        return confirmation

    def _settings_extra(self) -> dict[str, Any]:
        return {"enable_idempotence": True}

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        producer = super()._new_producer(transactional_id)
        accumulator = producer._message_accumulator
        accumulator._batch_ttl = math.inf
        accumulator._append_batch = partial(_append_batch, accumulator, accumulator._append_batch)
        producer.start = partial(retry_while_unavailable, producer.start)
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
