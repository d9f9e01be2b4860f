"""Asking a broker that may be away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from aiokafka.errors import KafkaError, KafkaTimeoutError

RETRY_SECONDS = 1.0

T = TypeVar("T")
log = structlog.get_logger(__name__)


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, asked for again for as long as the broker is away."""
    while True:
        try:
            return await ask()
        except KafkaError as error:
            if not (error.retriable or isinstance(error, KafkaTimeoutError)):
                raise
            log.warning("waiting for the broker", error=str(error))
            await asyncio.sleep(RETRY_SECONDS)
