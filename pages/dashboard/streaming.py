"""A viewer's stream of server-sent events over HTTP. An event is compressed once, for all viewers.

A stream of a viewer is one gzip member that never ends. Its body is a sequence of deflate blocks: each event is a
segment that begins and ends at a byte and refers to nothing outside it (RFC 1951, full flush), so segments can be sent
in any combination. What only one viewer gets, such as the id of an event, is a block that is not compressed.
"""

import asyncio
import struct
import zlib
from collections.abc import Mapping

from gateway.http import Request, Response, Write
from pages.dashboard.feed import Feed, Part, Position, Viewer
from pages.dashboard.shell import TEXT

MOST_VIEWERS = 1000
RETRY_MILLISECONDS = 1000
"""After how long a browser connects again."""
HEARTBEAT_SECONDS = 15.0
"""How long a stream is silent at most: shorter than the time-outs of proxies."""
CHUNK_BYTES = 1 << 16
"""About how much is written at once."""
RESET = b"event: reset\ndata: {}\n\n"
HEARTBEAT = b": \n\n"
EVENTS = "text/event-stream; charset=utf-8"
HEADERS = (("cache-control", "no-store, no-transform"), ("x-accel-buffering", "no"))  # nginx would collect events
FULL = Response(503, b"too many viewers\n", TEXT, (("retry-after", "60"),))
LEVEL = 4
_RAW = -15  # deflate without a header
HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # gzip: no name, no time
_STORED = struct.Struct("<BHH")
_LONGEST = 0xFFFF


def segment(json: bytes) -> bytes:
    """An event for all viewers: JSON in one line, compressed."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, _RAW)
    return packer.compress(b"data: " + json + b"\n\n") + packer.flush(zlib.Z_FULL_FLUSH)


def text_of(segment: bytes) -> bytes:
    """A segment, not compressed.

    >>> text_of(segment(b'{"kind": "live"}'))
    b'data: {"kind": "live"}\\n\\n'
    """
    return zlib.decompressobj(_RAW).decompress(segment)


def stored(text: bytes) -> bytes:
    """A short text for one viewer, as a block that is not compressed.

    >>> zlib.decompressobj(31).decompress(HEADER + stored(b"id: 7\\n") + segment(b"{}"))
    b'id: 7\\ndata: {}\\n\\n'
    """
    assert len(text) <= _LONGEST
    return _STORED.pack(0, len(text), len(text) ^ _LONGEST) + text


def stream(request: Request, asked: Mapping[str, str], feed: Feed) -> Response:
    """Events until the viewer leaves or the feed is closed; `asked` is the query.

    `after` in it is for pages that connect again by themselves: only browsers can set `Last-Event-ID`.
    """
    if len(feed.viewers) >= MOST_VIEWERS:
        return FULL
    begin = request.header(b"last-event-id") or asked.get("after", "")
    compressed = "gzip" in request.header(b"accept-encoding")
    encoded = (("content-encoding", "gzip"),) if compressed else ()
    position = (Position.parse(begin) or Position("?", ())) if begin else None  # one that nothing continues from

    async def send(write: Write) -> None:
        with Viewer(feed, asked.get("survey"), position) as viewer:
            retry = b"retry: %d\n\n" % RETRY_MILLISECONDS
            await write(HEADER + stored(retry) if compressed else retry)
            await _send(write, compressed, viewer, feed)

    return Response(200, b"", EVENTS, (*HEADERS, *encoded), send)


async def _send(write: Write, compressed: bool, viewer: Viewer, feed: Feed) -> None:
    while not feed.closed:
        chunk = bytearray()
        for part in viewer.take():
            chunk += _encoded(part, compressed)
            if len(chunk) >= CHUNK_BYTES:
                await write(bytes(chunk))
                chunk = bytearray()
        if chunk:
            await write(bytes(chunk))
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await viewer.changed.wait()
        except TimeoutError:
            await write(stored(HEARTBEAT) if compressed else HEARTBEAT)


def _encoded(part: Part, compressed: bool) -> bytes:
    own = RESET if part.segment is None else b""
    if part.position is not None:
        own = f"id: {part.position}\n".encode()
    segment = part.segment or b""
    if compressed:
        return (stored(own) if own else b"") + segment
    return own + text_of(segment)
