"""What a worker says about itself, and that it can say so whatever it is doing."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any, cast

import pytest
from faust.types import TP

from hearsay.serving.worker import serve_pages, worker_pages
from protocols.errors import ServerError
from servers.ports import free_port
from stream_app.faust_app.monitoring import STUCK_SECONDS, Health
from stream_app.faust_app.partitions.task import PartitionTask
from stream_app.faust_app.partitions.tasks import PORTION_RECORDS, PartitionTasks
from stream_app.faust_app.writing import SENT_AT_ONCE, Writer
from stream_app.kafka import Topics
from stream_app.log.flushes import DEADLETTERS, Flush, Output
from tests.stream_app.faust_app.test_partition_tasks import record


def ask(port: int, page: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_worker_answers_while_its_event_loop_is_busy() -> None:
    port = free_port()
    with serve_pages("127.0.0.1", port) as health:
        health.ready = lambda: True
        asked = [ask(port, page) for page in ("/live", "/ready")]  # by this thread, which runs no event loop
        assert asked == [(200, '{"live": true}'), (200, '{"ready": true}')]
        assert "hearsay_reports" in ask(port, "/metrics")[1]
        assert ask(port, "/other")[0] == 404


def test_it_is_not_ready_before_it_says_so() -> None:
    port = free_port()
    with serve_pages("127.0.0.1", port):
        assert ask(port, "/ready") == (503, '{"ready": false}')


def test_it_does_not_live_if_nothing_has_happened_for_long() -> None:
    now = 1000.0
    health = Health(lambda: now)
    assert health.live
    now += STUCK_SECONDS
    assert not health.live
    assert worker_pages(health)["/live"]().status == 503
    health.beat()
    assert health.live


def test_a_client_that_asks_nothing_keeps_nobody_waiting() -> None:
    port = free_port()
    with serve_pages("127.0.0.1", port), socket.create_connection(("127.0.0.1", port)):
        assert ask(port, "/live")[0] == 200


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ServerError, match=rf"port {port} of 127\.0\.0\.1 .*--web-port"),
            serve_pages("127.0.0.1", port),
        ):
            pass


class Turns:
    """Counts how often something is done between two turns of the event loop."""

    def __init__(self) -> None:
        self.done = self.most = 0
        self._since = 0

    def count(self, more: int = 1) -> None:
        self.done += more
        self._since += more
        self.most = max(self.most, self._since)

    async def turn(self) -> None:
        while True:
            self._since = 0
            await asyncio.sleep(0)


def test_the_event_loop_turns_between_portions_of_a_large_fetch() -> None:
    turns, fetched = Turns(), [record(offset, 10) for offset in range(10 * PORTION_RECORDS)]

    class Reading(PartitionTasks[Any]):
        make = _none

        async def apply(self, task: PartitionTask[Any], received: Any) -> bool:
            turns.count(len(received))
            cast(Any, task).next_offset = received[-1].offset + 1
            return False

    async def note_read(size: int, write_now: bool) -> None:
        assert size > 1000 * PORTION_RECORDS, "what a small record takes up besides its value counts"

    async def events() -> Any:
        yield SimpleNamespace(value=fetched, message=SimpleNamespace(generation_id=1, partition=0))

    async def main() -> None:
        app = cast(Any, SimpleNamespace(consumer_generation_id=1))
        tasks = Reading(app, "reports", _none, _none, _none, _none, _none)
        task = SimpleNamespace(next_offset=0, attempts=0, fault=None, tp=TP("reports", 0), note_read=note_read)
        tasks._tasks[0] = cast(Any, task)
        turning = asyncio.create_task(turns.turn())
        await asyncio.sleep(0)
        stream = SimpleNamespace(noack=lambda: SimpleNamespace(events=events))
        await tasks.consume(stream)
        turning.cancel()

    asyncio.run(main())
    assert (turns.done, turns.most) == (len(fetched), PORTION_RECORDS)


def test_the_event_loop_turns_while_many_dead_letters_are_sent() -> None:
    turns = Turns()

    class Producer:
        async def send(self, *args: object) -> asyncio.Future[None]:
            turns.count()
            sent = asyncio.get_running_loop().create_future()
            sent.set_result(None)
            return sent

    async def main() -> None:
        turning = asyncio.create_task(turns.turn())
        await asyncio.sleep(0)
        letters = tuple(Output(DEADLETTERS, b"%d" % number, b"{") for number in range(10 * SENT_AT_ONCE))
        writer = Writer(SimpleNamespace(producer=Producer()), Topics(), b"")
        await writer.write(Flush(0, (letters,)), _none, _none)
        turning.cancel()

    asyncio.run(main())
    assert (turns.done, turns.most) == (10 * SENT_AT_ONCE, SENT_AT_ONCE)


_none = cast(Any, None)
