"""Faust's producer, idempotent, and without a limit on how long it retries."""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import Any

from faust.transport.drivers.aiokafka import Producer

from stream_app.faust_app.broker.retrying import retry_while_unavailable


class RetryingProducer(Producer):
    """Faust's producer; a retry is never a second record, and records wait for as long as the broker is unavailable."""

    logger = logging.getLogger("faust.producer")

    def _settings_extra(self) -> dict[str, Any]:
        return {"enable_idempotence": True}

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        producer = super()._new_producer(transactional_id)
        producer._message_accumulator._batch_ttl = math.inf
        producer.start = partial(retry_while_unavailable, producer.start)
        return producer
