"""How records reach their partitions, how these take turns, how often they are flushed, and when a worker gives up."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import faust
import pytest
from faust.types import TP

from protocols.errors import ServerError
from stream_app.faust_app import crash
from stream_app.faust_app.agents import AT_ONCE, in_turns
from stream_app.faust_app.overrides.app import FaustApp
from stream_app.faust_app.task import FLUSH_BYTES, PAUSE_BYTES, QUIET_SECONDS, Pace
from stream_app.log.codec import RECORD_COST

LIMIT_SECONDS = 30
Event = tuple[int, Callable[[], Coroutine[Any, Any, None]]]  # a partition, and what is done
REPORTS = TP("small.reports", 0)


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
            await asyncio.wait_for(written.wait(), LIMIT_SECONDS)
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


class Seconds:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def flushes(reports_a_second: float, seconds: int, pressing: bool = False) -> int:
    """How often a partition is flushed into which small reports trickle; it is asked every second."""
    clock, made, waiting = Seconds(), 0, 0.0
    pace = Pace(clock)
    for second in range(1, seconds + 1):
        clock.seconds = second
        waiting += reports_a_second
        pace.note_read(int(waiting) * (RECORD_COST + 150))
        waiting -= int(waiting)
        if pace.is_due(pressing):
            made += 1
            pace.flushed(provisional=False, seconds=0.001)
    return made


@pytest.mark.parametrize("rate", [0.1, 2, 10, 50, 1000])
def test_reports_that_trickle_share_a_flush_unless_others_wait_for_it(rate: float) -> None:
    assert 300 / QUIET_SECONDS <= flushes(rate, 300) <= max(rate * 300 / min(QUIET_SECONDS * rate, 100), 60)
    assert flushes(rate, 300, pressing=True) == 300


def test_much_is_written_at_once_and_reading_pauses_before_it_is_too_much() -> None:
    pace = Pace(Seconds())
    pace.note_read(FLUSH_BYTES)
    assert pace.is_full and not pace.is_too_full
    pace.note_read(PAUSE_BYTES - FLUSH_BYTES)
    assert pace.is_too_full
    pace.flushed(provisional=False, seconds=1)
    assert not pace.is_full


@pytest.mark.parametrize(("cost", "pause"), [(0.001, 1), (0.2, 4), (3, 60)])
def test_results_that_are_not_final_take_a_small_share_of_the_time(cost: float, pause: float) -> None:
    clock = Seconds()
    pace = Pace(clock)
    assert pace.is_provisional, "the first one is made at once"
    pace.flushed(provisional=True, seconds=cost)
    clock.seconds = pause * 0.99
    assert not pace.is_provisional
    clock.seconds = pause
    assert pace.is_provisional


@pytest.mark.parametrize("other", [(7, 101), (8, 100), None], ids=["recovered more", "assigned again", "none is due"])
def test_too_many_checks_without_progress_in_between_are_an_error(
    other: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crash, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(crash, "fatal", nullcontext)
    seen: list[object] = []
    for other_or_same in (other, other, (7, 100), (7, 100)):
        seen += [*[(7, 100)] * (crash.MAX_UNCHANGED - 1), other_or_same]
    progress = iter(seen)
    with pytest.raises(ServerError, match="although the broker answers"):
        asyncio.run(crash.run_watchdog(lambda: next(progress), AsyncMock()))
    assert len(list(progress)) == crash.MAX_UNCHANGED - 1, "it ends at the first of the last group"


def test_a_worker_whose_broker_goes_away_while_it_starts_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash.os, "_exit", Mock(side_effect=SystemExit))
    monkeypatch.setattr(faust.App, "start", AsyncMock(side_effect=ConnectionError))
    app = FaustApp("small", {"broker": "kafka://127.0.0.1:1", "autodiscover": False}, AsyncMock())
    with pytest.raises(SystemExit):
        asyncio.run(app.start())


async def fetched_while_paused() -> list[set[TP]]:
    """The partitions of each fetch of a consumer whose only partition is paused during the first one."""
    app = FaustApp("small", {"broker": "kafka://127.0.0.1:1", "autodiscover": False}, AsyncMock())
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
