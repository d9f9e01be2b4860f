"""Large batches are opened in another thread, before aiokafka's fetcher has their response.

aiokafka opens batches where it delivers their records: in the thread that also sends heartbeats.
16 MB of gzip members take it 3 seconds of CPU, and a loaded worker its membership in the group.
While another thread opens them, aiokafka waits as it would for a slow broker: a rebalance meanwhile
discards the response.
"""

import asyncio
from typing import Any

import aiokafka.consumer.consumer
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.protocol.fetch import FetchRequest

from stream_app.faust_app.overrides.batches import (
    FETCHED_BYTES,
    BatchLimits,
    Fetched,
    RawBatches,
    head_of,
    opened_batch,
)
from stream_app.kafka.decompression import TooLarge

LARGE_BYTES = 4 << 10
"""Of a batch as it was fetched. A smaller one of a stranger may weigh 256 times as much, a megabyte,
which takes some milliseconds. For a few reports a thread takes longer than to open them."""


class OpeningFetcher(Fetcher):  # type: ignore[misc]
    """A fetcher whose client opens what it fetches."""

    def __init__(self, limits: BatchLimits, client: Any, *args: Any, **options: Any) -> None:
        super().__init__(OpeningClient(limits, client), *args, **options)


class OpeningClient:
    """aiokafka's client, as a fetcher uses it."""

    def __init__(self, limits: BatchLimits, client: Any) -> None:
        self._limits = limits
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def send(self, node_id: int, request: Any) -> Any:
        response = await self._client.send(node_id, request)
        if isinstance(request, FetchRequest) and _is_large(response):
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, open_large_batches, self._limits, response)
        return response


def _is_large(response: Any) -> bool:
    return any(
        len(part[-1] or b"") >= LARGE_BYTES  # what was fetched is the last field of a partition, in all versions
        for _, partitions in response.topics
        for part in partitions
    )


def open_large_batches(limits: BatchLimits, response: Any) -> None:
    """Open the large batches of a response, up to `FETCHED_BYTES`: what is behind them is fetched again.

    Without an end, a response of 50 MB could take gigabytes.
    """
    left = FETCHED_BYTES
    for topic, partitions in response.topics:
        for place, part in enumerate(partitions):
            *described, data = part
            if data:
                fetched, spent = _opened(limits, topic, data, left)
                left -= spent
                partitions[place] = (*described, fetched)


def _opened(limits: BatchLimits, topic: str, data: bytes, left: int) -> tuple[Fetched, int]:
    """What was fetched from a partition, with its large batches opened, and their weight."""
    batches = RawBatches(data)
    opened: dict[int, Any] = {}
    size = spent = 0
    while batches.has_next():
        raw = batches.next_raw()
        if len(raw) >= LARGE_BYTES:
            if spent >= left:
                return Fetched(data[:size], opened), spent
            first, _, _, kind, _, attributes, _, count = head_of(raw)
            limit = limits.of(topic, len(raw))
            try:
                opened[first] = opened_batch(raw, kind, attributes, count, limit)
                spent += opened[first][1]
            except Exception as error:  # raised again where the batch is delivered
                opened[first] = error if isinstance(error, TooLarge) else ValueError(str(error))
                spent += limit
        size += len(raw)
    return Fetched(data, opened), spent


def open_ahead(limits: BatchLimits) -> None:
    """From now on, consumers of this process open large batches in threads."""
    consumer: Any = aiokafka.consumer.consumer

    def fetcher(client: Any, *args: Any, **options: Any) -> OpeningFetcher:
        return OpeningFetcher(limits, client, *args, **options)

    consumer.Fetcher = fetcher
