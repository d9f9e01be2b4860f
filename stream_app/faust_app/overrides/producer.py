"""Faust's producer: idempotent, and waiting for as long as the broker is away."""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import Any

from faust.transport.drivers.aiokafka import Producer

from stream_app.faust_app.broker.retrying import patiently


class PatientProducer(Producer):
    """Faust's producer, idempotent (a retry is never a second record), and waiting as long as the broker is away."""

    logger = logging.getLogger("faust.producer")

    def _settings_extra(self) -> dict[str, Any]:
        return {"enable_idempotence": True}

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        producer = super()._new_producer(transactional_id)
        producer._message_accumulator._batch_ttl = math.inf
        producer.start = partial(patiently, producer.start)
        return producer
