"""aiokafka's connections, with fewer copies of what is large: a backlog that is read, and what is written of it.

aiokafka's stream copies whatever arrives into a buffer that grows, then a response out of it, and then each partition's
records out of the response. Here a large response is received in memory of its own, of which records are views. What is
sent in pieces is not joined.
"""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import aiokafka.conn
import numpy as np
from aiokafka.conn import AIOKafkaConnection, AIOKafkaProtocol
from aiokafka.protocol.fetch import FetchRequest

SMALL_BYTES = 64 << 10
"""Responses up to this size, and the beginnings of others, are received in a memory that is used again."""


@dataclass(frozen=True)
class Pieces:
    """Bytes that are not joined.

    >>> size_and_message = b"size" + (b"header" + Pieces((b"body", b"end")))
    >>> size_and_message.all, len(size_and_message)
    ((b'size', b'header', b'body', b'end'), 17)
    """

    all: tuple[bytes, ...]

    def __len__(self) -> int:
        return sum(map(len, self.all))

    def __radd__(self, before: bytes) -> Pieces:
        return Pieces((before, *self.all))


class Views:
    """A response, read like a file. What is read is a copy if it is small, else a view.

    >>> response = Views(memoryview(bytes(5) + bytes(SMALL_BYTES)))
    >>> type(response.read(5)), type(response.read(SMALL_BYTES)), response.read(1)
    (<class 'bytes'>, <class 'memoryview'>, b'')
    """

    def __init__(self, response: memoryview) -> None:
        self._left = response

    def read(self, size: int) -> bytes | memoryview:
        found, self._left = self._left[:size], self._left[size:]
        return found if len(found) >= SMALL_BYTES else bytes(found)


def opened(response: bytes | memoryview) -> Views | io.BytesIO:
    return Views(response) if isinstance(response, memoryview) else io.BytesIO(response)


class LeanProtocol(asyncio.BufferedProtocol):
    """The protocol of a connection, of which aiokafka reads a number of bytes at a time.

    Bytes are received in `_memory`: the small one, or one of the size of the response that is being read. It is paused
    while that is full.
    """

    def __init__(self, closed: asyncio.Future[None], reader: Any, *, loop: asyncio.AbstractEventLoop) -> None:
        self._stream = AIOKafkaProtocol(closed, reader, loop=loop)
        self._loop = loop
        self._transport: Any = None
        self._small = self._memory = memoryview(bytearray(SMALL_BYTES))
        self._held = 0
        self._arrival: asyncio.Future[None] | None = None
        self._end: BaseException | None = None
        reader.readexactly = self.read

    def __getattr__(self, name: str) -> Any:
        """Whatever else a protocol does, for writing and closing."""
        return getattr(self._stream, name)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._stream.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._stream.connection_lost(error)
        self._note_end(error)

    def eof_received(self) -> bool | None:
        keep_open: bool | None = self._stream.eof_received()
        self._note_end(None)
        return keep_open

    def pause_writing(self) -> None:
        self._stream.pause_writing()

    def resume_writing(self) -> None:
        self._stream.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._memory[self._held :]

    def buffer_updated(self, nbytes: int) -> None:
        self._held += nbytes
        if self._held == len(self._memory):
            self._transport.pause_reading()
        self._note_arrival()

    async def read(self, size: int) -> bytes | memoryview:
        """So many bytes. Raises what ended the connection, if it ended before."""
        if size < 0:
            raise ValueError(f"a response of {size} bytes: this is no Kafka broker")
        if size > len(self._memory):
            self._go_on_in(np.empty(size, dtype=np.uint8).data)
        while self._held < size:
            if self._end is not None:
                raise self._end
            self._arrival = self._loop.create_future()
            await self._arrival
        found = bytes(self._memory[:size]) if self._memory is self._small else self._memory
        self._go_on_in(self._small, size)
        return found

    def _go_on_in(self, memory: memoryview, taken: int = 0) -> None:
        """Receive in a memory from now on; what was not taken goes there."""
        was_full = self._held == len(self._memory)
        left = self._memory[taken : self._held]
        memory[: len(left)] = left
        self._memory, self._held = memory, len(left)
        if was_full and self._held < len(memory):
            self._transport.resume_reading()

    def _note_end(self, error: Exception | None) -> None:
        self._end = error or self._end or EOFError("the connection was closed")
        self._note_arrival()

    def _note_arrival(self) -> None:
        arrival, self._arrival = self._arrival, None
        if arrival is not None and not arrival.done():
            arrival.set_result(None)


class LeanConnection(AIOKafkaConnection):  # type: ignore[misc]
    """A connection that gives views of fetched records, and writes pieces."""

    async def connect(self) -> Any:
        streams = await super().connect()
        writer = self._writer
        write = writer.write
        writer.write = lambda data: writer.writelines(data.all) if isinstance(data, Pieces) else write(data)
        return streams

    def _handle_frame(self, resp: bytes | memoryview) -> None:
        _, request, _ = self._requests[0]
        is_fetch = request is not None and request.API_KEY == FetchRequest.API_KEY
        super()._handle_frame(resp if is_fetch else bytes(resp))


def copy_less() -> None:
    """From now on, connections of aiokafka in this process are lean."""
    connections: Any = aiokafka.conn
    connections.AIOKafkaProtocol = LeanProtocol
    connections.AIOKafkaConnection = LeanConnection
    connections.io = SimpleNamespace(BytesIO=opened)
