"""What the consumer fetches from: the partitions that were active when the fetch began."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

from faust.types import TP

from stream_app.faust_app.overrides.app import FaustApp

REPORTS = TP("small.reports", 0)


async def nothing() -> None:
    pass


async def fetched_while_paused() -> list[set[TP]]:
    """The partitions of each fetch of a consumer whose only partition is paused during the first one."""
    app = FaustApp("small", {"broker": "kafka://127.0.0.1:1", "autodiscover": False}, nothing)
    consumer: Any = app.batch_consumer
    consumer._active_partitions = {REPORTS}
    fetches: list[Collection[TP]] = []

    async def getmany(active: Collection[TP], timeout: float) -> dict[TP, list[object]]:
        fetches.append(active)
        consumer.pause_partitions({REPORTS})
        await asyncio.sleep(0)
        return {}

    consumer._getmany = getmany
    reading = asyncio.create_task(consumer._drain_messages(SimpleNamespace(should_stop=False)))
    for _ in range(20):
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])
    consumer._thread.thread_loop.close()
    return [set(partitions) for partitions in fetches]


def test_a_fetch_knows_its_partitions_even_if_all_are_paused_meanwhile() -> None:
    """To aiokafka, a fetch from no partitions is a fetch from all."""
    assert asyncio.run(fetched_while_paused()) == [{REPORTS}]
