"""One connection: requests are read, admitted by their heads, and answered one after the other.

Whatever a client does, it holds a bounded number of bytes for a bounded time: in every state of the parser, what is no
body is counted until a request is complete. Nothing here logs an address.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httptools
import structlog

from gateway.http.messages import (
    FORWARDED,
    Application,
    Request,
    Response,
    address_of,
    is_sound,
    name_in,
    origin_form,
    refusal,
)
from gateway.http.turns import COST_OF_A_READ, COST_OF_AN_ANSWER, Turns

MALFORMED = refusal(400, "malformed", "this is not HTTP/1.1 as the gateway reads it")
TOO_LONG_HEAD = refusal(431, "too-large", "the head of the request is too long")
TOO_LARGE = refusal(413, "too-large", "the body of the request is larger than what is taken here")
TOO_SLOW = refusal(408, "too-slow", "the request did not arrive in time")
OTHER_NAME = refusal(421, "misdirected", "this address is not served under this name; see --name")
FAILED = refusal(500, "failed", "this cannot be answered now")
FULL = refusal(503, "unavailable", "too much is being received; try again", ("retry-after", "1"))
ONCE = frozenset(
    {
        b"authorization", b"content-encoding", b"content-length", b"content-type", b"cookie", b"expect", b"host",
        b"origin", b"transfer-encoding",
    }
)  # fmt: skip
READ = ONCE | FORWARDED | {b"accept-encoding", b"if-none-match", b"last-event-id"}
"""The headers that anybody here reads. Others are not kept: a short one takes up twenty times its bytes."""
READ_BYTES, AHEAD_BYTES = 256 << 10, 2 << 10
"""How much is read at once, and how much of it may be no body. That may be many short requests, each of which takes up
much more than its bytes; while one waits, nothing is read."""
CHUNKED_BYTES = 8 << 10
"""How much of a body in chunks is read at once. A chunk of 6 bytes takes 11, and a microsecond to
parse: 256 KiB took 24 ms, up to 32 times in a turn, on each connection."""
JOINED_BYTES = 32 << 10
"""Small parts of a body are joined until they are as large: a part of 6 bytes takes 56 as an object
of its own. One buffer for a whole body left holes where it had grown from, 1.54 times its size."""
PART_BYTES = 64 << 10
"""A larger body is sent in parts, so that a client need only read one of them in the time that a request has."""
LINGER_SECONDS = 2.0
"""How long a client that is refused may go on sending, so that it can read why."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Limits:
    """What clients may hold. A request must be complete, and an answer read, within `request_seconds`."""

    connections: int = 10_000
    held_bytes: int = 64 << 20  # bodies of all requests that are being read or answered
    head_bytes: int = 16 << 10
    request_seconds: float = 20.0
    idle_seconds: float = 75.0
    stop_seconds: float = 20.0


class Shared:
    """What the connections of a listener share: application, limits, buffer, and the bytes of bodies that they hold."""

    names: frozenset[str] | None = None  # what clients may call us; None: anything
    time: Callable[[], float]

    def __init__(self, application: Application, limits: Limits, verifies_clients: bool, knows_addresses: bool) -> None:
        self.application = application
        self.limits = limits
        self.verifies_clients = verifies_clients
        self.knows_addresses = knows_addresses
        self.stopping = False
        self.held_bytes = 0
        self.turns = Turns()
        self.buffer = memoryview(bytearray(READ_BYTES))  # what was read is parsed before anything else is read
        self._clients: set[Connection] = set()
        self._resting: dict[Connection, None] = {}  # nobody waits for an answer there; the longest first

    @property
    def connections(self) -> int:
        return len(self._clients)

    def discard(self, connection: "Connection") -> None:
        self._clients.discard(connection)
        self.turns.leave(connection)
        self.occupied(connection)

    def resting(self, connection: "Connection") -> None:
        """Everything that was asked over a connection is answered now."""
        if connection in self._clients:
            self._resting[connection] = None

    def occupied(self, connection: "Connection") -> None:
        self._resting.pop(connection, None)

    def hold(self, size: int) -> bool:
        """Take so many bytes of what all connections may hold together; False if they are not there."""
        if self.held_bytes + size > self.limits.held_bytes:
            return False
        self.held_bytes += size
        return True

    def release(self, size: int) -> None:
        self.held_bytes -= size


class Connection(asyncio.BufferedProtocol):
    """Reads requests into a short queue, and hands the first of them to the application."""

    def __init__(self, listener: Shared) -> None:
        self._listener = listener
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: Any = None
        self._queue: deque[Request | bytes] = deque()  # bytes: a refusal, which is the last answer
        self._reading: Request | None = None  # its head is complete
        self._in_head = False
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._head_bytes = 0
        self._framing = 0  # what came since the last request was complete, without its body
        self._parts: list[bytes] = []  # of a body, and what comes after them
        self._tail = bytearray()
        self._size = 0
        self._most = 0
        self._room = 0  # of the present read
        self._may_answer_now = False
        self._busy = self._ending = self._deaf = self._endless = self._reading_paused = self._writing_paused = (
            self._last
        ) = self._chunked = False
        self._streaming: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self.opening: asyncio.Future[Any] | None = None
        self.deadline = float("inf")

    # --- what the transport calls

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.deadline = self._listener.time() + self._listener.limits.request_seconds

    def connection_lost(self, error: Exception | None) -> None:
        self._ending = True
        if self._streaming is not None:
            self._streaming.cancel()
        self._release()
        self._listener.discard(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        body = 0 if self._reading is None else self._most - self._size
        if self._chunked:
            body = min(body, CHUNKED_BYTES)
        room = self._listener.buffer[: body + AHEAD_BYTES]
        self._room = len(room)
        return room

    def buffer_updated(self, nbytes: int) -> None:
        if not (self._ending or self._deaf):
            self._parse(nbytes)
        has_more = nbytes == self._room  # perhaps: uvloop would read on before it looks at other connections
        if has_more:
            self._listener.turns.wait(self)
        if self._queue or has_more:
            self._pause_reading()

    def _parse(self, nbytes: int) -> None:
        self._framing += nbytes
        self._may_answer_now = True
        try:
            self._parser.feed_data(self._listener.buffer[:nbytes])
        except (httptools.HttpParserUpgrade, httptools.HttpParserError):
            self._refuse(MALFORMED)
        # Sizes and extensions of chunks may be as long as their data. What one read has is parsed in any case.
        if self._framing > self._listener.limits.head_bytes + self._size:
            self._refuse(TOO_LONG_HEAD if self._reading is None else TOO_LARGE)

    def pause_writing(self) -> None:
        self._expect(self._listener.limits.request_seconds)
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        reading = self._in_head or self._reading is not None
        self._expect(self._listener.limits.request_seconds if reading else float("inf"))
        self._listener.turns.wait(self)

    # --- what the parser calls

    def on_message_begin(self) -> None:
        if self._ending or self._deaf:
            return
        self._in_head = True
        self._url, self._headers, self._head_bytes = b"", {}, 0
        self._expect(self._listener.limits.request_seconds)

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._head_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self._head_bytes += len(name) + len(value) + 4
        if self._in_head and name not in READ:
            return
        if not self._in_head or (name in ONCE and name in self._headers):  # nothing here needs trailers
            self._refuse(MALFORMED)
        else:
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._ending or self._deaf:
            return
        parser, listener, headers = self._parser, self._listener, self._headers
        url = origin_form(self._url, headers)
        if self._head_bytes > listener.limits.head_bytes:
            self._refuse(TOO_LONG_HEAD)
            return
        if parser.should_upgrade() or url is None or not is_sound(parser.get_http_version(), headers):
            self._refuse(MALFORMED)
            return
        if listener.names is not None and b"host" in headers and name_in(headers[b"host"]) not in listener.names:
            self._refuse(OTHER_NAME)
            return
        keep_alive = parser.should_keep_alive() and not listener.stopping
        certificate = self._transport.get_extra_info("peercert") if listener.verifies_clients else None
        path, _, query = url.partition(b"?")
        asked = parser.get_method().decode("latin-1"), path.decode("latin-1"), query
        request = Request(*asked, headers, keep_alive, certificate)
        if listener.knows_addresses:
            request.address = address_of(self._transport)
        admitted = listener.application.admit(request)
        if isinstance(admitted, Response):
            self._refuse(admitted, request)
            return
        length = headers.get(b"content-length", b"0")
        chunked = b"transfer-encoding" in headers
        if (chunked and not admitted) or not length.isdigit() or int(length[:20]) > admitted:
            self._refuse(TOO_LARGE)
            return
        self._reading, self._parts, self._size = request, [], 0
        self._most = admitted if chunked else int(length)
        self._chunked = chunked
        if headers.get(b"expect", b"").lower() == b"100-continue":
            self._transport.write(CONTINUE)

    def on_body(self, body: bytes) -> None:
        if self._ending or self._reading is None:
            return
        self._framing -= len(body)
        self._size += len(body)
        if self._size > self._most:
            self._size -= len(body)
            self._refuse(TOO_LARGE)
        elif not self._listener.hold(len(body)):
            self._size -= len(body)
            self._refuse(FULL)
        elif not self._tail and (not self._parts or len(body) >= JOINED_BYTES):
            self._parts.append(body)
        else:
            self._tail += body
            if len(self._tail) >= JOINED_BYTES:
                self._end_part()

    def _end_part(self) -> None:
        self._parts.append(bytes(self._tail))
        self._tail.clear()

    def on_message_complete(self) -> None:
        request, self._reading = self._reading, None
        if self._ending or request is None:
            return
        if self._tail:
            self._end_part()
        request.body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._size, self._framing = [], 0, 0
        self._chunked = False
        self._queue.append(request)
        self._listener.occupied(self)
        self._expect(float("inf"))
        self._answer_now_or_later()

    # --- answering

    def _answer_now_or_later(self) -> None:
        """Of the requests in one read, the first may be answered at once. The others wait for their turns."""
        if self._busy:
            return
        turns = self._listener.turns
        if self._may_answer_now and turns.has_room():
            turns.at_once(self._is_answered)
        else:
            turns.wait(self)
        self._may_answer_now = False

    def _is_answered(self) -> bool:
        """Take the next request, and say whether its answer is there already."""
        self._next()
        return not self._busy

    def take_turn(self) -> int:
        """The next answer, or else the next read."""
        if self._queue:
            self._next()
            return COST_OF_AN_ANSWER
        self._wait_for_next()
        return COST_OF_A_READ

    def _next(self) -> None:
        if self._busy or self._writing_paused or self._ending or not self._queue:
            return
        request = self._queue.popleft()
        if isinstance(request, bytes):
            self._transport.write(request)
            self._end()
            return
        self._busy, answered = True, False

        def answer(response: Response) -> None:
            nonlocal answered
            if answered:
                return
            answered = True
            self._listener.release(len(request.body))
            self._busy = False
            if response.status == 503 and request.method == "POST":
                self._listener.application.refused(response)
            if self._ending:
                return
            closing = not request.keep_alive or self._listener.stopping or (self._last and not self._queue)
            if request.method == "GET" and (response.stream is not None or len(response.body) > PART_BYTES):
                self._transport.write(response.encoded(True, head_only=True))
                self._busy = self._deaf = True
                self._endless = response.stream is not None
                self._streaming = asyncio.ensure_future(self._send(response))
                return
            self._transport.write(response.encoded(closing, request.method == "HEAD"))
            if closing:
                self._end()
            elif self._queue or self._reading_paused:
                self._listener.turns.wait(self)
            else:
                self._wait_for_next()

        try:
            self._listener.application.handle(request, answer)
        except Exception as error:  # whoever asks again may get an answer
            log.error("a request could not be answered", kind=type(error).__name__, exc_info=error)
            answer(FAILED)

    async def _send(self, response: Response) -> None:
        """Send a body to its end, as fast as the client reads. One that leaves, or is cut off, cancels it."""

        async def write(data: bytes) -> None:
            for start in range(0, len(data), PART_BYTES):
                self._transport.write(data[start : start + PART_BYTES])
                if self._writing_paused:
                    self._drained = asyncio.get_running_loop().create_future()
                    await self._drained

        try:
            await (write(response.body) if response.stream is None else response.stream(write))
        finally:
            self._busy = False
            self._end()

    def _pause_reading(self) -> None:
        if not self._reading_paused and not self._transport.is_closing():
            self._reading_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._reading_paused and not self._transport.is_closing():
            self._reading_paused = False
            self._transport.resume_reading()

    def _wait_for_next(self) -> None:
        self._resume_reading()
        if self.idle and not self._ending:
            self._listener.resting(self)
            if self._reading is None and not self._in_head:
                self._expect(self._listener.limits.idle_seconds)

    def _expect(self, seconds: float) -> None:
        """Set when the client must have done its next step. A client that must read answers first has no other."""
        if not self._writing_paused:
            self.deadline = self._listener.time() + seconds

    def _refuse(self, response: Response, request: Request | None = None) -> None:
        """Answer after what was asked before, and end the connection: what follows is not read as requests."""
        if self._ending or self._deaf:
            return
        self._deaf = True
        self._listener.application.refused(response)
        self._release_reading()
        self._queue.append(response.encoded(True, request is not None and request.method == "HEAD"))
        self._expect(float("inf"))
        self._next()

    def _end(self) -> None:
        """End the connection. What the client still sends is read and dropped for a while, so that it can read why."""
        if self._ending:
            return
        self._ending = True
        self._release()
        self._listener.resting(self)
        unread = self._transport.get_write_buffer_size() > 0
        self.deadline = self._listener.time() + (self._listener.limits.request_seconds if unread else LINGER_SECONDS)
        self._resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def eof_received(self) -> bool:
        """The client sends no more: what is not answered yet still is. One that follows a stream has left."""
        if self._ending or self._endless or not (self._busy or self._queue):
            return False
        self._last = True
        return True

    def expire(self) -> None:
        """The deadline has passed."""
        if self._ending or self._writing_paused:
            self._ending = True
            self._transport.abort()
        elif self._in_head or self._reading is not None:
            self._refuse(TOO_SLOW)
        else:
            self._end()

    @property
    def idle(self) -> bool:
        return not self._busy and not self._queue

    def close(self) -> None:
        """End it for good."""
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def _release(self) -> None:
        """Give back what is held for a body that is still being read, and for requests that will not be answered."""
        self._release_reading()
        self._listener.release(sum(len(request.body) for request in self._queue if isinstance(request, Request)))
        self._queue.clear()

    def _release_reading(self) -> None:
        self._listener.release(self._size)
        self._reading, self._parts, self._size, self._in_head = None, [], 0, False
        self._tail.clear()
        self._chunked = False
