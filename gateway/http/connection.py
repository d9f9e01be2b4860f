"""One connection: requests are read, admitted by their heads, and answered one after the other.

Whatever a client does, it holds a bounded number of bytes for a bounded time. Nothing here knows or logs its address.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import httptools

from gateway.http.messages import Request, Response, refusal
from gateway.http.shared import Shared

MALFORMED = refusal(400, "malformed", "this is not HTTP/1.1 as the gateway reads it")
TOO_LONG_HEAD = refusal(431, "too-large", "the head of the request is too long")
TOO_LARGE = refusal(413, "too-large", "the body of the request is larger than what is taken here")
TOO_SLOW = refusal(408, "too-slow", "the request did not arrive in time")
FULL = refusal(503, "unavailable", "too much is being received; try again", ("retry-after", "1"))
ONCE = frozenset({b"authorization", b"content-type", b"content-encoding", b"host", b"origin"})
MOST_QUEUED = 8
LINGER_SECONDS = 2.0
"""How long a client that is refused may go on sending, so that it can read why."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(asyncio.Protocol):
    """Reads requests into a short queue, and hands the first of them to the application."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: Any = None
        self._queue: deque[Request] = deque()
        self._reading: Request | None = None  # its head is complete
        self._in_head = False
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._head_bytes = 0
        self._parts: list[bytes] = []
        self._size = 0
        self._most = 0
        self._busy = self._ending = self._reading_paused = self._writing_paused = self._last = False
        self.deadline = 0.0

    # --- what the transport calls

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.deadline = self._shared.time() + self._shared.limits.request_seconds
        if not self._shared.add(self):
            self._refuse(FULL)

    def connection_lost(self, error: Exception | None) -> None:
        self._ending = True
        self._release()
        self._shared.discard(self)

    def data_received(self, data: bytes) -> None:
        if self._ending:
            return
        if self._in_head:  # the first part of a head is bounded by what is read at once
            self._head_bytes += len(data)
            if self._head_bytes > self._shared.limits.head_bytes:
                self._refuse(TOO_LONG_HEAD)
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(MALFORMED)
        except httptools.HttpParserError:
            if not self._ending:
                self._refuse(MALFORMED)
        else:
            if len(self._queue) >= MOST_QUEUED and not self._reading_paused and not self._ending:
                self._reading_paused = True
                self._transport.pause_reading()

    def pause_writing(self) -> None:
        self._expect(self._shared.limits.request_seconds)
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        reading = self._in_head or self._reading is not None
        self._expect(self._shared.limits.request_seconds if reading else float("inf"))
        self._wait_for_next()
        self._next()

    # --- what the parser calls

    def on_message_begin(self) -> None:
        self._in_head = True
        self._url, self._headers, self._head_bytes = b"", {}, 0
        self._expect(self._shared.limits.request_seconds)

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes + len(self._url) > self._shared.limits.head_bytes:
            self._refuse(TOO_LONG_HEAD)
        elif name in ONCE and name in self._headers:
            self._refuse(MALFORMED)
        else:
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._ending:
            return
        parser, headers = self._parser, self._headers
        if parser.should_upgrade():
            self._refuse(MALFORMED)
            return
        keep_alive = parser.should_keep_alive() and not self._shared.stopping
        certificate = self._transport.get_extra_info("peercert") if self._shared.verifies_clients else None
        request = Request(parser.get_method().decode("latin-1"), self._url, headers, keep_alive, certificate)
        admitted = self._shared.application.admit(request)
        if isinstance(admitted, Response):
            self._refuse(admitted, request)
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > admitted:
            self._refuse(TOO_LARGE)
            return
        self._reading, self._parts, self._size, self._most = request, [], 0, admitted
        if headers.get(b"expect", b"").lower() == b"100-continue":
            self._transport.write(CONTINUE)

    def on_body(self, body: bytes) -> None:
        if self._ending or self._reading is None:
            return
        self._size += len(body)
        if self._size > self._most:
            self._size -= len(body)
            self._refuse(TOO_LARGE)
        elif not self._shared.hold(len(body)):
            self._size -= len(body)
            self._refuse(FULL)
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        request, self._reading = self._reading, None
        if self._ending or request is None:
            return
        request.body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._queue.append(request)
        self._expect(float("inf"))
        self._next()

    # --- answering

    def _next(self) -> None:
        if self._busy or self._writing_paused or self._ending or not self._queue:
            return
        self._busy = True
        request = self._queue.popleft()

        def answer(response: Response) -> None:
            self._shared.release(len(request.body))
            self._busy = False
            if response.status == 503 and request.method == "POST":
                self._shared.application.refused(response)
            if self._ending:
                return
            closing = not request.keep_alive or self._shared.stopping or (self._last and not self._queue)
            self._transport.write(response.encoded(closing, request.method == "HEAD"))
            if closing:
                self._end()
            elif self._queue:
                self._shared.soon(self._next)
            else:
                self._wait_for_next()

        self._shared.application.handle(request, answer)

    def _wait_for_next(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        if self._reading is None and not self._in_head and not self._busy and not self._queue:
            self._expect(self._shared.limits.idle_seconds)

    def _expect(self, seconds: float) -> None:
        """Set when the client must have done its next step. A client that must read answers first has no other."""
        if not self._writing_paused:
            self.deadline = self._shared.time() + seconds

    def _refuse(self, response: Response, request: Request | None = None) -> None:
        """Answer at once and end the connection: the rest of what the client sends is not read as requests.

        A response to an earlier request that is not answered yet would be out of order, so nothing is sent then.
        """
        if self._ending:
            return
        self._shared.application.refused(response)
        if not self._busy and not self._queue:
            self._transport.write(response.encoded(True, request is not None and request.method == "HEAD"))
        self._end()

    def _end(self) -> None:
        """End the connection. What the client still sends is read and dropped for a while, so that it can read why."""
        self._ending = True
        self._release()
        self.deadline = self._shared.time() + LINGER_SECONDS
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def eof_received(self) -> bool:
        """The client sends no more: what is not answered yet still is."""
        if self._ending or not (self._busy or self._queue):
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
        self._transport.abort()

    def _release(self) -> None:
        """Give back what is held for a body that is still being read, and for requests that will not be answered."""
        self._shared.release((self._size if self._reading is not None else 0) + sum(len(r.body) for r in self._queue))
        self._reading, self._parts, self._size = None, [], 0
        self._queue.clear()
