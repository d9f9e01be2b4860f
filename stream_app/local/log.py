"""An append-only log in a file: what a partition of the reports topic is when there is no broker.

    length: u32 | CRC-32 of what follows: u32 | length of the content type: u8 | content type | value

Offsets are ordinal numbers. A process that dies while appending leaves a broken last record; a machine that loses its
power may leave anything where it was still writing. Both are cut off when the log is opened again: nobody was told that
what comes after the confirmed records is safe.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

from protocols.errors import LogError
from stream_app.counting.judging import Record

_HEAD = struct.Struct("<II")


class LocalLog:
    """One partition. `append` in order, `sync` before anybody is told that it is safe.

    The first `confirmed` records are known to be safe: if one is damaged, so is the disk.
    """

    def __init__(self, path: Path, confirmed: int) -> None:
        self._path = path
        self._file: BinaryIO = path.open("a+b")
        self.next_offset, end = self._measure(confirmed)
        self._file.truncate(end)

    def append(self, content_type: str, value: bytes) -> Record:
        name = content_type.encode()
        body = bytes([len(name)]) + name + value
        self._file.write(_HEAD.pack(len(body), crc32(body)) + body)
        self.next_offset += 1
        return Record(self.next_offset - 1, content_type, value)

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def read(self, first: int = 0) -> Iterator[Record]:
        """The records from one offset on."""
        self._file.flush()
        with self._path.open("rb") as file:
            for offset in range(self.next_offset):
                size, checksum = _HEAD.unpack(file.read(_HEAD.size))
                if offset < first:
                    file.seek(size, os.SEEK_CUR)
                    continue
                body = file.read(size)
                if crc32(body) != checksum:
                    raise LogError(f"{self._path}: record {offset} is damaged", "restore the directory from a backup")
                split = 1 + body[0]
                yield Record(offset, body[1:split].decode(), body[split:])

    def close(self) -> None:
        self._file.close()

    def _measure(self, confirmed: int) -> tuple[int, int]:
        """How many whole records there are, and where they end."""
        length = self._path.stat().st_size
        count = end = 0
        with self._path.open("rb") as file:
            while end + _HEAD.size <= length:
                size, checksum = _HEAD.unpack(file.read(_HEAD.size))
                following = end + _HEAD.size + size
                if size == 0 or following > length:
                    break
                if count >= confirmed and crc32(file.read(size)) != checksum:
                    break
                count, end = count + 1, following
                file.seek(end)
        return count, end
