"""Retrying requests while the broker is unavailable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from aiokafka.errors import KafkaError, KafkaTimeoutError

RETRY_SECONDS = 1.0

T = TypeVar("T")
log = structlog.get_logger(__name__)


async def retry_while_unavailable(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer to a request, which is repeated for as long as it fails because the broker is unavailable."""
    while True:
        try:
            return await ask()
        except KafkaError as error:
            if not (error.retriable or isinstance(error, KafkaTimeoutError)):
                raise
            log.warning("waiting for the broker", error=str(error))
            await asyncio.sleep(RETRY_SECONDS)
