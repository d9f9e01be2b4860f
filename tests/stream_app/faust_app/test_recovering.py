"""Recovery reads a changelog from where it seeks to, without a gap, whatever was being fetched during the rebalance.

Faust as a whole, with a broker, is in tests/integration; here a fetch is held back at a moment at which a broker holds
one back once in a thousand times.
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
from stream_app.faust_app.overrides.recovery import StateRecovery, StateTableManager
from stream_app.faust_app.overrides.table import StateTable

CHANGELOG = TP("small-state-changelog", 0)
KEY = position_key(0)
LIMIT_SECONDS = 60.0


class Bench:
    """A consumer and a recovery whose fetches and seeks end when the test ends them."""

    def __init__(self) -> None:
        self.app = faust.App("small", broker="kafka://127.0.0.1:1", autodiscover=False, TableManager=StateTableManager)
        self.app.transport = BatchTransport(self.app.conf.broker_consumer, self.app)
        self.table = StateTable(self.app, "state", 1, _nothing)
        self.app.tables.add(self.table)
        self.consumer: Any = self.app.consumer
        assert isinstance(self.consumer, BatchConsumer)
        recovery = self.app.tables.recovery  # type: ignore[attr-defined]
        assert isinstance(recovery, StateRecovery)
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
        """Set what Faust sets when partitions are assigned."""
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
    """Within this, a consumer reads; at its beginning a fetch is in progress."""
    task = asyncio.create_task(bench.consumer._drain_messages(SimpleNamespace(should_stop=False)))
    await steps()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def with_bench(check: Callable[[Bench], Awaitable[None]]) -> Callable[[], None]:
    """A test that runs a coroutine in an event loop of its own, with a new bench."""

    async def run() -> None:
        bench = Bench()
        try:
            await asyncio.wait_for(check(bench), LIMIT_SECONDS)
        finally:
            bench.consumer._thread.thread_loop.close()

    def test() -> None:
        asyncio.run(run())

    test.__doc__ = check.__doc__
    return test


async def steps() -> None:
    """Let other tasks run until they wait for something."""
    for _ in range(20):
        await asyncio.sleep(0)


@with_bench
async def test_nothing_is_sought_before_the_fetch_in_progress_has_ended(bench: Bench) -> None:
    """It would take records from after the seek, and drop them, as its assignment has ended."""
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


@with_bench
async def test_all_records_fetched_after_the_seek_are_applied(bench: Bench) -> None:
    async with reader(bench):
        bench.fetches[0][1].set_result({})
        await bench.seek()
        bench.recovery._set_recovery_started()
        bench.consumer.resume_flow()
        while bench.fetches[-1][1].done():
            await asyncio.sleep(0.01)
        bench.fetches[-1][1].set_result({CHANGELOG: [record(4), record(5), record(6), record(7)]})
        await bench.recovery.signal_recovery_end.wait()
    assert bench.table.records(0) == {KEY: b"7"}


@with_bench
async def test_nothing_is_applied_between_an_assignment_and_its_seek(bench: Bench) -> None:
    """Earlier records may be missing before those."""
    bench.recovery.apply_changelog(CHANGELOG, [record(6)], generation=1)
    await bench.seek()
    bench.assign(2)
    bench.recovery.apply_changelog(CHANGELOG, [record(6)], generation=2)
    assert bench.recovery.active_offsets[CHANGELOG] == 4
    assert bench.table.records(0) == {}


@with_bench
async def test_a_fetch_knows_its_partitions_even_if_all_are_paused_meanwhile(bench: Bench) -> None:
    """To aiokafka, a fetch from no partitions is a fetch from all."""
    async with reader(bench):
        bench.consumer.pause_partitions({CHANGELOG})
        assert bench.fetches[0][0] == {CHANGELOG}
        bench.fetches[0][1].set_result({})
        await steps()
    assert len(bench.fetches) == 1


@with_bench
async def test_a_recovery_waits_for_a_broker_for_as_long_as_it_takes(bench: Bench) -> None:
    """Faust would stop it, and never recover again."""
    await bench.recovery._wait(asyncio.sleep(0.05), timeout=0.001)


@with_bench
async def test_records_that_were_applied_before_change_nothing(bench: Bench) -> None:
    await bench.seek()
    bench.recovery.apply_changelog(CHANGELOG, [record(3), record(4)], generation=1)
    assert bench.table.records(0) == {}
    assert bench.recovery.active_offsets == Counter({CHANGELOG: 4})
