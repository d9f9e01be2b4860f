"""While a large batch is opened, the thread that reads does everything else: it sends heartbeats, for instance."""

import asyncio
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import aiokafka.consumer.consumer
import aiokafka.consumer.fetcher
import pytest
from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.protocol.fetch import FetchResponse_v11

from stream_app.faust_app.overrides import opening
from stream_app.faust_app.overrides.batches import BatchLimits, SkippedRecords, account_for_all_offsets
from stream_app.faust_app.overrides.opening import open_ahead
from stream_app.log.marks import Why
from tests.helpers import bombs

REPORTS = TopicPartition("reports", 0)
LIMITS = BatchLimits(16 << 20, REPORTS.topic)
PATIENCE_SECONDS = 60
MEMBERS = 150_000
"""Of a letter each: 3 MB of gzip."""


@pytest.fixture(autouse=True)
def overridden(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The overrides of a worker, for the time of a test."""
    for name in ("PartitionRecords", "MemoryRecords"):
        monkeypatch.setattr(aiokafka.consumer.fetcher, name, getattr(aiokafka.consumer.fetcher, name))
    monkeypatch.setattr(aiokafka.consumer.consumer, "Fetcher", aiokafka.consumer.consumer.Fetcher)
    account_for_all_offsets(LIMITS)
    open_ahead(LIMITS)
    yield


class Broker:
    """The client of a fetcher: it has the batches of a partition, and sends as many at once as it is asked for."""

    _metadata_max_age_ms = 60_000
    cluster = SimpleNamespace(leader_for_partition=lambda tp: 0, broker_metadata=lambda node: None)

    def __init__(self, *raw: bytes) -> None:
        self._loop = asyncio.get_running_loop()
        self._raw = raw
        self.sent: list[int] = []

    async def send(self, node_id: int, request: Any) -> Any:
        ((topic, ((partition, offset, _),)),) = request.topics
        self.sent.append(offset)
        if offset >= len(self._raw):
            await asyncio.sleep(0.01)
        data = b"".join(self._raw[offset:])
        return FetchResponse_v11(0, 0, 0, [(topic, [(partition, 0, len(self._raw), 0, 0, None, -1, data)])])


class Turns:
    """The turns of a loop, and the CPU seconds of its thread in the longest."""

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0.0

    async def watch(self) -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, time.thread_time() - began)
            self.count += 1


async def fetched(turns: Turns, *raw: bytes) -> tuple[list[ConsumerRecord], Broker]:
    """What a consumer reads of these batches, of one offset each."""
    broker, subscriptions = Broker(*raw), SubscriptionState()
    subscriptions.assign_from_user([REPORTS])
    subscriptions.subscription.assignment.state_value(REPORTS).reset_to(0)
    watching = asyncio.create_task(turns.watch())
    fetcher = aiokafka.consumer.consumer.Fetcher(broker, subscriptions)
    found: list[ConsumerRecord] = []
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(found) < len(raw):
                records = await fetcher.fetched_records([REPORTS], timeout=1)
                found += records.get(REPORTS, [])
    finally:
        await asyncio.sleep(0.01)  # the last turn is over, and counted
        watching.cancel()
        await fetcher.close()
    return found, broker


def moved(raw: bytes, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + raw[8:]


def test_the_loop_goes_on_while_large_batches_are_opened() -> None:
    """Failure would look like: all of it in one turn, which takes half a second and more."""
    turns = Turns()
    raw = [moved(bombs.member_bomb(MEMBERS), offset) for offset in range(2)]
    began = time.process_time()
    records, broker = asyncio.run(fetched(turns, *raw))
    spent = time.process_time() - began
    assert [len(record.value) for record in records] == [MEMBERS] * 2
    assert broker.sent[0] == 0
    assert turns.longest < spent / 4, f"one of {turns.count} turns took {turns.longest:.2f} of {spent:.2f} CPU seconds"


def test_what_cannot_be_opened_ahead_is_skipped_in_its_place() -> None:
    too_much = bombs.bomb(bombs.GZIP, 20 << 20)
    unreadable = bombs.batch(bombs.ZSTD, b"?" * opening.LARGE_BYTES)
    raw = [bombs.bomb(0, 10_000), too_much, unreadable, bombs.bomb(bombs.LZ4, 10_000)]
    records, _ = asyncio.run(fetched(Turns(), *(moved(one, offset) for offset, one in enumerate(raw))))
    why = [record.why if isinstance(record, SkippedRecords) else None for record in records]
    assert why == [None, Why.TOO_LARGE, Why.UNDECODABLE, None]
    assert [record.offset for record in records] == [0, 1, 2, 3]


def test_what_is_behind_much_that_was_opened_is_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "FETCHED_BYTES", 25_000)
    raw = [moved(bombs.bomb(0, 10_000), offset) for offset in range(5)]
    records, broker = asyncio.run(fetched(Turns(), *raw))
    assert [record.offset for record in records] == [0, 1, 2, 3, 4]
    assert broker.sent[:2] == [0, 3], "three of them weigh more than what is opened at once"
