"""An append-only log in a file: takes the place of a partition of the reports topic in the embedded app.

    length: u32 | CRC-32 of the rest: u32 | length of the content type: u8 | content type | value

The offset of a record is its number, from 0. A process that is killed while appending leaves an incomplete last record;
a machine that loses power may leave any bytes after the last sync. Both are cut off when the log is opened again: no
sender has had a confirmation for them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from zlib import crc32

from protocols.errors import LogError
from servers.private_files import open_private
from stream_app.counting.judging import Record
from stream_app.log.marks import NO_EPOCH

_HEAD = struct.Struct("<II")


class LocalLog:
    """One partition. Records are durable after `sync`, and may be confirmed to their sender only then.

    The first `confirmed` records were synced before: damage among them is an error, and is not cut off. The checksum of
    the last of them, `confirmed_checksum`, tells this log from another one. Records have theirs as their epoch.
    """

    def __init__(self, path: Path, confirmed: int) -> None:
        self._path = path
        self._file: IO[bytes] = open_private(path, "a+b")
        self.confirmed_checksum = NO_EPOCH
        self.next_offset, end = self._measure(confirmed)
        self._file.truncate(end)
        self._unsynced = True  # what an earlier process appended may not be on disk yet

    def append(self, content_type: str, value: bytes) -> Record:
        name = content_type.encode()
        body = bytes([len(name)]) + name + value
        checksum = crc32(body)
        self._file.write(_HEAD.pack(len(body), checksum) + body)
        self._unsynced = True
        self.next_offset += 1
        return Record(self.next_offset - 1, content_type, value, checksum)

    def sync(self) -> None:
        if self._unsynced:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._unsynced = False

    def read(self, first: int = 0) -> Iterator[Record]:
        """The records from offset `first` on."""
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
                yield Record(offset, body[1:split].decode(), body[split:], checksum)

    def close(self) -> None:
        self._file.close()

    def _measure(self, confirmed: int) -> tuple[int, int]:
        """The number of complete records, and the byte at which the last one ends."""
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
                if count == confirmed:
                    self.confirmed_checksum = checksum
                file.seek(end)
        return count, end
