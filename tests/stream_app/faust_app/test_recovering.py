"""Reading a changelog from where it is sought to: all of it, whatever was being fetched when partitions were assigned.

The rest of Faust and the broker are in tests/integration; here, one fetch is held where a broker holds one in a
thousand.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import faust
from faust.types import TP

from stream_app.counting.state import position_key
from stream_app.faust_app.overrides.consumer import BatchConsumer, BatchTransport
from stream_app.faust_app.overrides.recovery import OrderlyRecovery, OrderlyTables
from stream_app.faust_app.overrides.table import StateTable

CHANGELOG = TP("small-state-changelog", 0)
KEY = position_key(0)


class Bench:
    """A consumer and a recovery whose fetches and seeks are ours to time."""

    def __init__(self) -> None:
        self.app = faust.App("small", broker="kafka://127.0.0.1:1", autodiscover=False, TableManager=OrderlyTables)
        self.app.transport = BatchTransport(self.app.conf.broker_consumer, self.app)
        self.table = StateTable(self.app, "state", 1, _nothing)
        self.app.tables.add(self.table)
        self.consumer: Any = self.app.consumer
        assert isinstance(self.consumer, BatchConsumer)
        recovery = self.app.tables.recovery  # type: ignore[attr-defined]
        assert isinstance(recovery, OrderlyRecovery)
        self.recovery = recovery
        self.recovery.active_tps.add(CHANGELOG)
        self.recovery.tp_to_table[CHANGELOG] = self.table
        self.recovery.active_offsets.update({CHANGELOG: 4})
        self.recovery.active_highwaters.update({CHANGELOG: 7})
        self.fetches: list[tuple[Collection[TP], asyncio.Future[Any]]] = []
        self.seeks: list[dict[TP, int]] = []
        self.consumer._getmany = self._getmany
        self.consumer.seek_wait = self._seek_wait
        self.consumer._active_partitions = {CHANGELOG}
        self.assign(1)

    def assign(self, generation: int) -> None:
        """What Faust and aiokafka note when partitions are assigned."""
        self.app.consumer_generation_id = self.recovery._generation_id = generation

    async def seek(self) -> None:
        await self.recovery._seek_offsets(self.consumer, {CHANGELOG}, self.recovery.active_offsets, "active")

    async def _getmany(self, active: Collection[TP], timeout: float) -> Any:
        self.fetches.append((active, asyncio.get_running_loop().create_future()))
        return await self.fetches[-1][1]

    async def _seek_wait(self, offsets: dict[TP, int]) -> None:
        self.seeks.append(dict(offsets))


async def _nothing(partitions: set[int]) -> None:
    pass


def record(offset: int) -> Any:
    return SimpleNamespace(offset=offset, key=KEY, value=b"%d" % offset)


@asynccontextmanager
async def reader(bench: Bench) -> AsyncIterator[None]:
    """Somebody reads, and is in the middle of a fetch."""
    task = asyncio.create_task(bench.consumer._drain_messages(SimpleNamespace(should_stop=False)))
    await steps()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def told(story: Callable[[Bench], Awaitable[None]]) -> Callable[[], None]:
    """A test that runs in a loop of its own."""

    async def tell() -> None:
        bench = Bench()
        try:
            await story(bench)
        finally:
            bench.consumer._thread.thread_loop.close()

    def test() -> None:
        asyncio.run(tell())

    test.__doc__ = story.__doc__
    return test


async def steps() -> None:
    """Let everybody go on who can."""
    for _ in range(20):
        await asyncio.sleep(0)


@told
async def test_nothing_is_sought_before_a_fetch_under_way_has_ended(bench: Bench) -> None:
    """It would take what comes after the seek, for an assignment that has ended."""
    async with reader(bench):
        bench.assign(2)
        seeking = asyncio.create_task(bench.seek())
        await steps()
        assert (len(bench.fetches), bench.seeks) == (1, [])
        bench.fetches[0][1].set_result({CHANGELOG: [record(5), record(6), record(7)]})
        await seeking
    assert bench.seeks == [{CHANGELOG: 4}]
    assert bench.table.records(0) == {}
    assert bench.recovery.active_offsets[CHANGELOG] == 4


@told
async def test_all_that_is_fetched_after_the_seek_is_taken(bench: Bench) -> None:
    async with reader(bench):
        bench.fetches[0][1].set_result({})
        await bench.seek()
        bench.recovery._set_recovery_started()
        bench.consumer.resume_flow()
        while bench.fetches[-1][1].done():
            await asyncio.sleep(0.01)
        bench.fetches[-1][1].set_result({CHANGELOG: [record(4), record(5), record(6), record(7)]})
        await asyncio.wait_for(bench.recovery.signal_recovery_end.wait(), 10)
    assert bench.table.records(0) == {KEY: b"7"}


@told
async def test_nothing_is_taken_between_an_assignment_and_its_seek(bench: Bench) -> None:
    """Records from before it may lack some that came earlier still."""
    bench.recovery.take(CHANGELOG, [record(6)], generation=1)
    await bench.seek()
    bench.assign(2)
    bench.recovery.take(CHANGELOG, [record(6)], generation=2)
    assert bench.recovery.active_offsets[CHANGELOG] == 4
    assert bench.table.records(0) == {}


@told
async def test_a_fetch_knows_its_partitions_even_if_all_are_paused_meanwhile(bench: Bench) -> None:
    """To aiokafka no partitions are all partitions."""
    async with reader(bench):
        bench.consumer.pause_partitions({CHANGELOG})
        assert bench.fetches[0][0] == {CHANGELOG}
        bench.fetches[0][1].set_result({})
        await steps()
    assert len(bench.fetches) == 1


@told
async def test_a_recovery_waits_for_a_broker_for_as_long_as_it_takes(bench: Bench) -> None:
    """Faust would end it for ever."""
    await bench.recovery._wait(asyncio.sleep(0.05), timeout=0.001)


@told
async def test_records_that_are_known_already_change_nothing(bench: Bench) -> None:
    await bench.seek()
    bench.recovery.take(CHANGELOG, [record(3), record(4)], generation=1)
    assert bench.table.records(0) == {}
    assert bench.recovery.active_offsets == Counter({CHANGELOG: 4})
