"""A viewer's stream of server-sent events over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from aiohttp import web

from pages.dashboard.encoding import Encoding, Gzip, Plain
from pages.dashboard.feed import Feed, Part, Viewer
from pages.dashboard.positions import Position

MOST_VIEWERS = 1000
RETRY_MILLISECONDS = 1000
"""After how long a browser connects again."""
HEARTBEAT_SECONDS = 15.0
"""How long a stream is silent at most: shorter than the time-outs of proxies."""
STALLED_SECONDS = 60.0
"""A viewer that takes nothing for so long is disconnected. When it connects again, it is given what it lacks."""
CHUNK_BYTES = 1 << 16
"""About how much is written at once."""
RESET = b"event: reset\ndata: {}\n\n"
HEARTBEAT = b": \n\n"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",  # nginx would collect events
}


async def stream(request: web.Request, feed: Feed, headers: Mapping[str, str]) -> web.StreamResponse:
    """Send events until the viewer leaves or the feed is closed.

    `after` in the query is for pages that connect again by themselves: only browsers can set `Last-Event-ID`.
    """
    if len(feed.viewers) >= MOST_VIEWERS:
        raise web.HTTPServiceUnavailable(text="too many viewers\n", headers={"Retry-After": "60"})
    begin = request.headers.get("Last-Event-ID") or request.query.get("after", "")
    encoding = Gzip() if "gzip" in request.headers.get("Accept-Encoding", "") else Plain()
    encoded = {} if encoding.name is None else {"Content-Encoding": encoding.name}
    response = web.StreamResponse(headers={**headers, **HEADERS, **encoded})
    await response.prepare(request)
    position = (Position.parse(begin) or Position("?", ())) if begin else None  # one that nothing continues from
    with Viewer(feed, request.query.get("survey"), position) as viewer, suppress(ConnectionError):
        try:
            await _write(response, encoding.begin + encoding.own(b"retry: %d\n\n" % RETRY_MILLISECONDS))
            await _send(response, encoding, viewer, feed)
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()  # it would wait for the viewer to take what is left
    return response


async def _send(response: web.StreamResponse, encoding: Encoding, viewer: Viewer, feed: Feed) -> None:
    while not feed.closed:
        chunk = bytearray()
        for part in viewer.take():
            chunk += _encoded(part, encoding)
            if len(chunk) >= CHUNK_BYTES:
                await _write(response, chunk)
                chunk = bytearray()
        if chunk:
            await _write(response, chunk)
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await viewer.changed.wait()
        except TimeoutError:
            await _write(response, encoding.own(HEARTBEAT))


def _encoded(part: Part, encoding: Encoding) -> bytes:
    if part.segment is None:
        return encoding.own(RESET)
    id = b"" if part.position is None else encoding.own(f"id: {part.position}\n".encode())
    return id + encoding.shared(part.segment)


async def _write(response: web.StreamResponse, chunk: bytes | bytearray) -> None:
    async with asyncio.timeout(STALLED_SECONDS):
        await response.write(chunk)
