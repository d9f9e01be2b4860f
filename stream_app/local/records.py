"""The bytes of a log in a file: its head, and its records.

    file      "hearsay1" | marker: 4 random bytes | first offset: u64 | CRC-32 of the body before it: i64 | CRC-32: u32
    record    marker | length of the body: u32 | offset: u64 | CRC-32 of the body: u32 | CRC-32 of these: u32 | body
    body      length of the content type: u8 | content type | value

The marker finds whole records behind damaged bytes. It is random, so no sender can put one into a value.
"""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from protocols.errors import LogError
from stream_app.counting.judging import Record
from stream_app.log.codec import ANOTHER_RELEASE

MARKER_BYTES = 4
_MAGIC = b"hearsay1"
_FILE = struct.Struct("<8s4sQqI")
_HEAD = struct.Struct("<4sIQII")
_SUM = struct.Struct("<I")
FILE_HEAD_BYTES = _FILE.size
HEAD_BYTES = _HEAD.size
Bytes = mmap.mmap | bytes


class FileHead(NamedTuple):
    """The head of a file: its marker, its first offset, and the checksum of the record before that."""

    marker: bytes
    first: int
    checksum: int

    def encode(self) -> bytes:
        return _summed(_FILE.pack(_MAGIC, self.marker, self.first, self.checksum, 0))

    @staticmethod
    def read(data: bytes, path: Path) -> "FileHead":
        """The head that these bytes begin with. Raises LogError, with the path, if it is none."""
        head = data[: _FILE.size]
        if not head.startswith(_MAGIC):
            raise LogError(f"{path} is not a log of this release", ANOTHER_RELEASE)
        if len(head) < _FILE.size or _summed(head) != head:
            raise LogError(f"the head of {path} is damaged", "restore the directory from a backup")
        _, marker, first, checksum, _ = _FILE.unpack(head)
        return FileHead(marker, first, checksum)


class RecordHead(NamedTuple):
    """The head of a record: the length of its body, its offset, and the checksum of its body."""

    size: int
    offset: int
    checksum: int

    @property
    def whole(self) -> int:
        """How many bytes the record takes, with this head."""
        return _HEAD.size + self.size


class Records(NamedTuple):
    """The records of a file with this marker, in its bytes."""

    marker: bytes

    def encode(self, offset: int, content_type: str, value: bytes) -> tuple[Record, bytes]:
        """A record, and its bytes."""
        name = content_type.encode()
        body = bytes([len(name)]) + name + value
        record = Record(offset, content_type, value, crc32(body))
        return record, _summed(_HEAD.pack(self.marker, len(body), offset, record.epoch, 0)) + body

    def head_at(self, data: Bytes, at: int) -> RecordHead | None:
        """The head of the record that begins at a byte, if there is a whole one."""
        found = data[at : at + _HEAD.size]
        if len(found) < _HEAD.size or not found.startswith(self.marker) or _summed(found) != found:
            return None
        return RecordHead(*_HEAD.unpack(found)[1:-1])

    def record_at(self, data: Bytes, at: int) -> Record | None:
        """The record that begins at a byte, if there is a whole one."""
        head = self.head_at(data, at)
        if head is None:
            return None
        body = data[at + _HEAD.size : at + head.whole]
        if len(body) < head.size or crc32(body) != head.checksum:
            return None
        split = 1 + body[0]
        return Record(head.offset, body[1:split].decode(), body[split:], head.checksum)

    def from_byte(self, data: Bytes, at: int, offset: int) -> Iterator[tuple[int, Record]]:
        """Whole records of consecutive offsets that follow each other from a byte: where each ends, and it."""
        while (record := self.record_at(data, at)) is not None and record.offset == offset:
            at += size_of(record)
            offset += 1
            yield at, record

    def wherever(self, data: Bytes, at: int) -> Iterator[Record]:
        """All whole records behind a byte, whatever stands between them."""
        while (at := data.find(self.marker, at)) >= 0:
            record = self.record_at(data, at)
            if record is not None:
                yield record
            at += 1 if record is None else size_of(record)


def size_of(record: Record) -> int:
    """How many bytes a record of the log takes."""
    return _HEAD.size + 1 + len((record.content_type or "").encode()) + len(record.value or b"")


def _summed(head: bytes) -> bytes:
    """A head with the checksum of the rest of it at its end."""
    return head[: -_SUM.size] + _SUM.pack(crc32(head[: -_SUM.size]))
