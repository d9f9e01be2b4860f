"""Faust's producer, idempotent, without a limit on how long it retries. A record that is too large fails alone."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from aiokafka.errors import MessageSizeTooLargeError, RecordListTooLargeError
from faust.transport.drivers.aiokafka import Producer

TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
"""What a broker says of a batch that is larger than its topic, or it, allows."""


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
