"""Server-sent events as bytes. An event is compressed once, for all viewers.

A stream of a viewer is one gzip member that never ends. Its body is a sequence of deflate blocks: each event is a
segment that begins and ends at a byte and refers to nothing outside it (RFC 1951, full flush), so segments can be sent
in any combination. What only one viewer gets, such as the id of an event, is a block that is not compressed.
"""

import struct
import zlib

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
