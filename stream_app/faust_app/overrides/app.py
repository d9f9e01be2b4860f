"""Faust's app, with our consumer and producer in the place of its own."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import faust
import structlog
from faust.transport.drivers.aiokafka import Transport

from stream_app.faust_app.crash import EXIT
from stream_app.faust_app.overrides.consumer import BatchConsumer
from stream_app.faust_app.overrides.producer import RetryingProducer

LEAVE_SECONDS = 10.0
"""How long leaving may take, with the broker away for instance, before the process ends anyway."""

log = structlog.get_logger(__name__)


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
