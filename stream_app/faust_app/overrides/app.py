"""Faust's app, with our consumer, producer and table recovery in the place of its own."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import faust

from stream_app.faust_app.broker.offsets import Offsets
from stream_app.faust_app.overrides.consumer import BatchConsumer, BatchTransport
from stream_app.faust_app.overrides.producer import RetryingProducer
from stream_app.faust_app.overrides.recovery import StateTableManager


@dataclass(frozen=True)
class Hooks:
    """What is called when Faust's app starts (before recovery), and when it has stopped."""

    start: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]]


class FaustApp(faust.App):
    """An app that reads in batches, writes idempotently, and asks for offsets over connections of their own."""

    logger = logging.getLogger("faust.app")

    def __init__(self, name: str, settings: Mapping[str, Any], offsets: Offsets, hooks: Hooks) -> None:
        super().__init__(name, **settings, TableManager=StateTableManager)
        self.offsets = offsets
        self._our_hooks = hooks

    @property
    def batch_consumer(self) -> BatchConsumer:
        return cast(BatchConsumer, self.consumer)

    @property
    def recovered_offsets(self) -> int:
        """Grows with every changelog record that is recovered."""
        recovery = cast(StateTableManager, self.tables).recovery
        return sum(offset or 0 for offset in recovery.active_offsets.values())

    async def on_start(self) -> None:
        await super().on_start()
        await self._our_hooks.start()

    async def on_stop(self) -> None:
        await super().on_stop()
        await self._our_hooks.stop()

    def _new_transport(self) -> BatchTransport:
        return BatchTransport(self.conf.broker_consumer, self)

    def _new_producer(self) -> RetryingProducer:
        return RetryingProducer(self.producer_transport, loop=self.loop, beacon=self.beacon)

    def _create_directories(self) -> None:
        """Faust would make a data directory, but nothing is kept on this machine."""
