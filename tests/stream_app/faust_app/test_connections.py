"""Connections receive what was sent, however it arrives, and say when it ends; real sockets, on both event loops."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvloop
from aiokafka.protocol.fetch import FetchRequest

from stream_app.faust_app.overrides.connections import SMALL_BYTES, LeanConnection, LeanProtocol, Views

SECONDS = 120  # of work that takes one: the machine may be busy
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def run(loop: Callable[[], asyncio.AbstractEventLoop], work: Callable[[], Any]) -> Any:
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(asyncio.wait_for(work(), SECONDS))


@asynccontextmanager
async def connected(serve: Serve) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The two ends that aiokafka has of a connection to a server."""
    loop = asyncio.get_running_loop()
    served, closed = asyncio.Event(), loop.create_future()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await serve(reader, writer)
            await reader.read()
        writer.close()
        served.set()

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    reader = asyncio.StreamReader(loop=loop)
    protocol = LeanProtocol(closed, reader, loop=loop)
    transport, _ = await loop.create_connection(lambda: protocol, *server.sockets[0].getsockname())
    try:
        yield reader, asyncio.StreamWriter(transport, protocol, reader, loop)  # type: ignore[arg-type]
    finally:
        transport.close()
        await asyncio.gather(closed, served.wait())
        server.close()
        await server.wait_closed()


def response(size: int) -> bytes:
    return struct.pack(">i", size) + (bytes(range(251)) * (size // 251 + 1))[:size]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("chunk", [1 << 22, 100_001, 4096])
def test_responses_of_any_size_arrive_in_any_pieces(loop: Any, chunk: int) -> None:
    sizes = [
        0,
        1,
        SMALL_BYTES - 5,
        SMALL_BYTES - 4,
        SMALL_BYTES,
        SMALL_BYTES + 1,
        1 << 20,
        3,
        3_000_001,
        7,
        SMALL_BYTES,
    ]
    sent = b"".join(map(response, sizes))

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for start in range(0, len(sent), chunk):
            writer.write(sent[start : start + chunk])
            await writer.drain()
            await asyncio.sleep(0)

    async def work() -> None:
        async with connected(serve) as (reader, _writer):
            for size in sizes:
                assert struct.unpack(">i", await reader.readexactly(4)) == (size,)
                found = await reader.readexactly(size)
                assert isinstance(found, bytes if size <= SMALL_BYTES else memoryview)
                assert found == response(size)[4:]

    run(loop, work)


@pytest.mark.parametrize("loop", LOOPS)
def test_responses_that_wait_are_held_back_until_they_are_read(loop: Any) -> None:
    """Memory does not grow with what nobody has read yet."""
    sent = 0

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        for _ in range(60):
            writer.write(response(1 << 20))
            await writer.drain()
            sent += 1

    async def work() -> None:
        async with connected(serve) as (reader, _writer):
            while True:
                before = sent
                await asyncio.sleep(0.3)
                if sent == before:
                    break
            assert sent < 40, "the system has a few MiB of buffers"
            for _ in range(60):
                assert await reader.readexactly(4) == struct.pack(">i", 1 << 20)
                assert await reader.readexactly(1 << 20) == response(1 << 20)[4:]

    run(loop, work)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("arrives", [0, 3, 1000, 200_000])
def test_what_ends_early_is_an_error_also_for_whoever_asks_later(loop: Any, arrives: int) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(arrives))
        writer.close()

    async def work() -> None:
        async with connected(serve) as (reader, _writer):
            with pytest.raises((EOFError, ConnectionError)):
                await reader.readexactly(arrives + 1)
            with pytest.raises((EOFError, ConnectionError)):
                await reader.readexactly(300_000)
            assert reader.at_eof() or reader.exception() is not None, "aiokafka asks whether it is connected"

    run(loop, work)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_response_of_less_than_nothing_is_an_error(loop: Any) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(100))

    async def work() -> None:
        async with connected(serve) as (reader, _writer):
            with pytest.raises(ValueError, match="no Kafka broker"):
                await reader.readexactly(-5)

    run(loop, work)


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_written_waits_until_the_other_end_reads_it(loop: Any) -> None:
    sent = [bytes([number]) * (1 << 20) for number in range(64)]
    received = bytearray()
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        while data := await reader.read(1 << 20):
            received.extend(data)

    async def work() -> None:
        async with connected(serve) as (_reader, writer):
            for number, data in enumerate(sent):
                writer.write(data)
                if number == 40:
                    draining = asyncio.create_task(writer.drain())
                    await asyncio.sleep(0.2)
                    assert not draining.done()
                    go_on.set()
                    await draining
            writer.write_eof()
            while len(received) < 64 << 20:
                await asyncio.sleep(0.01)
        assert bytes(received) == b"".join(sent)

    run(loop, work)


class Answers(LeanConnection):
    """A connection that waits for the answer to one request."""

    def __init__(self, api_key: int | None) -> None:
        request = None if api_key is None else type("Request", (), {"API_KEY": api_key})()
        self._requests = [(None, request, asyncio.Future())]
        self._closed_fut = None

    def __del__(self, *_: Any) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("api_key", "kind"), [(FetchRequest.API_KEY, memoryview), (11, bytes), (None, bytes)])
def test_only_fetched_records_are_views(api_key: int | None, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr(LeanConnection.__mro__[1], "_handle_frame", lambda _, resp: given.append(resp))

    async def work() -> None:
        Answers(api_key)._handle_frame(memoryview(bytes(SMALL_BYTES + 1)))

    run(asyncio.new_event_loop, work)
    assert [type(one) for one in given] == [kind]


def test_a_response_is_read_to_its_end_and_not_beyond() -> None:
    data = bytes(range(256)) * 512
    views = Views(memoryview(data))
    assert (views.read(3), views.read(0)) == (data[:3], b"")
    large = views.read(SMALL_BYTES)
    assert isinstance(large, memoryview)
    assert large == data[3 : SMALL_BYTES + 3]
    assert bytes(views.read(1 << 20)) == data[SMALL_BYTES + 3 :]
    assert views.read(1) == b""
