"""Partitions are worked on at once, and what belongs to one of them in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from stream_app.faust_app.partitions.tasks import AT_ONCE, in_turns

LIMIT_SECONDS = 30
Event = tuple[int, Callable[[], Coroutine[Any, Any, None]]]  # a partition, and what is done


def in_order(events: list[Event]) -> Awaitable[None]:
    async def coming() -> AsyncIterator[Event]:
        for event in events:
            yield event

    return in_turns(coming(), lambda event: event[0], lambda event: event[1]())


def test_a_partition_that_waits_does_not_hold_up_another() -> None:
    done: list[str] = []

    async def run() -> None:
        written = asyncio.Event()

        async def waiting() -> None:
            await written.wait()
            done.append("waiting")

        async def other() -> None:
            done.append("other")
            written.set()

        await in_order([(0, waiting), (1, other)])

    asyncio.run(asyncio.wait_for(run(), LIMIT_SECONDS))
    assert done == ["other", "waiting"]


def test_work_on_one_partition_is_done_in_order_and_on_at_most_so_many_at_once() -> None:
    begun: dict[int, list[int]] = {0: [], 1: [], 2: []}
    working: set[int] = set()
    most = 0

    async def work(partition: int, number: int) -> None:
        nonlocal most
        assert partition not in working
        working.add(partition)
        most = max(most, len(working))
        begun[partition].append(number)
        for _ in range(3 if partition else 1):
            await asyncio.sleep(0)
        working.remove(partition)

    async def run() -> None:
        places = [(number % 3 if number < 20 else 0, number) for number in range(30)]
        await in_order([(partition, partial(work, partition, number)) for partition, number in places])

    asyncio.run(asyncio.wait_for(run(), LIMIT_SECONDS))
    assert begun == {0: [*range(0, 20, 3), *range(20, 30)], 1: [*range(1, 20, 3)], 2: [*range(2, 20, 3)]}
    assert most == AT_ONCE


def test_what_is_under_way_is_cancelled_with_the_agent() -> None:
    cancelled: list[int] = []

    async def forever(partition: int) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(partition)
            raise

    async def run() -> None:
        task = asyncio.ensure_future(in_order([(number, partial(forever, number)) for number in range(3)]))
        for _ in range(10):
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(asyncio.wait_for(run(), LIMIT_SECONDS))
    assert sorted(cancelled) == [0, 1]
