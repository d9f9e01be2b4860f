"""Several partitions at once: while what one has counted is being written, others are counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Self


class Turns:
    """Work on some partitions at once, `most` of them; on the same partition one after the other.

    Work is cancelled when the block ends in an error.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._group = asyncio.TaskGroup()
        self._working: dict[int, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._group.__aexit__(*error)

    async def take(self, partition: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin some work on a partition, as soon as earlier work on it is done and fewer than `most` are worked on."""
        while partition in self._working or len(self._working) == self._most:
            earlier = self._working.get(partition)
            await asyncio.wait([earlier] if earlier else self._working.values(), return_when=asyncio.FIRST_COMPLETED)
            self._working = {one: task for one, task in self._working.items() if not task.done()}
        self._working[partition] = self._group.create_task(work())
