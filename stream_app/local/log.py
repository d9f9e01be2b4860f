"""An append-only log in a file: takes the place of a partition of the reports topic in the embedded app.

    file      "hearsay1" | marker: 4 random bytes | first offset: u64 | CRC-32 of the body before it: i64 | CRC-32: u32
    record    marker | length of the body: u32 | offset: u64 | CRC-32 of the body: u32 | CRC-32 of these: u32 | body
    body      length of the content type: u8 | content type | value

A process that is killed while appending leaves an incomplete last record; a machine that loses power may leave any
bytes after the last sync. Both are cut off when the log is opened again: no sender has had a confirmation for them.
Other damage may have come later, to records that were confirmed: they are cut off, too, but kept in a file beside the
log, and told. The marker finds whole records behind damaged bytes. It is random, so no sender can put one into a value.

Records are needed until the state contains them. Then a new file takes the place of this one, once it is large.
Offsets go on: the head of the file says which one is the first, and what was before it.
"""

import mmap
import os
import secrets
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple
from zlib import crc32

from protocols.errors import LogError
from servers.private_files import create_private, open_private, write_private
from stream_app.counting.judging import Record
from stream_app.log.codec import ANOTHER_RELEASE
from stream_app.log.marks import NO_EPOCH

LARGE_BYTES = 1 << 20
"""How large a log may be before it begins anew."""
SAME_BACKUP = "restore the logs and the results from the same backup"
_MAGIC = b"hearsay1"
_FILE = struct.Struct("<8s4sQqI")
_HEAD = struct.Struct("<4sIQII")
_SUM = struct.Struct("<I")


class _Head(NamedTuple):
    size: int
    offset: int
    checksum: int


@dataclass(frozen=True)
class Cut:
    """What was found behind the last good record and kept in a file: so many bytes that are no record, and records."""

    file: Path
    offset: int
    damaged_bytes: int
    records: tuple[Record, ...]


class LocalLog:
    """One partition. Records are durable after `sync`, and may be confirmed to their sender only then.

    The first `confirmed` records were synced before: damage among them is an error, and nothing is cut off. The
    checksum of the last of them, `confirmed_checksum`, tells this log from another one. Records have theirs as their
    epoch. `note` is called before anything is cut off that may have been confirmed, and once more after a crash in it.
    `unread` are the records after those that were confirmed, when the log was opened.
    """

    def __init__(self, path: Path, confirmed: int, note: Callable[[Cut], None] = lambda cut: None) -> None:
        self._path = path
        self.unread: list[Record] = []
        if not path.exists():
            if confirmed:
                raise LogError(f"{path} is missing, but the state has offsets up to {confirmed - 1}", SAME_BACKUP)
            create_private(path, _file_head(secrets.token_bytes(4), 0, NO_EPOCH))
        self._file: IO[bytes] = open_private(path, "r+b")
        try:
            self._marker, self.next_offset, self._checksum = self._read_head()
            with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                end = self._read(data, confirmed)
                self.cut = self._keep_aside(data, end)
            if self.cut is not None:
                note(self.cut)
            self._file.truncate(end)
            self._file.seek(end)
        except BaseException:
            self._file.close()
            raise
        self._unsynced = True  # what an earlier process appended may not be on disk yet

    def append(self, content_type: str, value: bytes) -> Record:
        name = content_type.encode()
        body = bytes([len(name)]) + name + value
        record = Record(self.next_offset, content_type, value, crc32(body))
        self._file.write(_summed(_HEAD.pack(self._marker, len(body), record.offset, record.epoch, 0)) + body)
        self._unsynced = True
        self.next_offset, self._checksum = record.offset + 1, record.epoch
        return record

    def sync(self) -> None:
        if self._unsynced:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._unsynced = False

    def forget(self) -> None:
        """Begin anew if the log is large. All its records must be durable in what is made of them.

        A crash leaves the old file or the new one.
        """
        if self._file.tell() >= LARGE_BYTES:
            write_private(self._path, _file_head(self._marker, self.next_offset, self._checksum))
            self._file.close()
            self._file = open_private(self._path, "r+b")
            self._file.seek(_FILE.size)

    def close(self) -> None:
        with suppress(OSError):  # of a full disk: what was not synced was not confirmed
            self._file.close()

    def _read_head(self) -> tuple[bytes, int, int]:
        """The marker, the first offset, and the checksum of the record before it."""
        head = self._file.read(_FILE.size)
        if not head.startswith(_MAGIC):
            raise LogError(f"{self._path} is not a log of this release", ANOTHER_RELEASE)
        if len(head) < _FILE.size or _summed(head) != head:
            raise LogError(f"the head of {self._path} is damaged", "restore the directory from a backup")
        _, marker, first, checksum, _ = _FILE.unpack(head)
        return marker, first, checksum

    def _read(self, data: mmap.mmap, confirmed: int) -> int:
        """Read the records, up to the first one that is not whole. Returns where they end."""
        end, self.confirmed_checksum = _FILE.size, self._checksum
        if confirmed < self.next_offset:
            raise LogError(
                f"{self._path} begins with offset {self.next_offset}, but the state goes on at {confirmed}", SAME_BACKUP
            )
        while (record := self._record_at(data, end)) is not None and record.offset == self.next_offset:
            if record.offset < confirmed:
                self.confirmed_checksum = record.epoch
            else:
                self.unread.append(record)
            self.next_offset, self._checksum = record.offset + 1, record.epoch
            end += _size(record)
        if self.next_offset < confirmed:
            what = "ends before" if end == len(data) else "is damaged at"
            raise LogError(
                f"{self._path} {what} offset {self.next_offset}, but the state has offsets up to {confirmed - 1}",
                SAME_BACKUP,
            )
        return end

    def _keep_aside(self, data: mmap.mmap, end: int) -> Cut | None:
        """Keep what stands behind the last good record, unless it is what an interrupted append leaves."""
        at, records = end, list[Record]()
        while (at := data.find(self._marker, at)) >= 0:
            record = self._record_at(data, at)
            records += [] if record is None else [record]
            at += 1 if record is None else _size(record)
        rest = data[end:]
        if not records and (not any(rest) or self._is_begun(rest)):
            return None
        file = self._path.with_suffix(f".cut-{self.next_offset}")
        write_private(file, rest)
        return Cut(file, self.next_offset, len(rest) - sum(map(_size, records)), tuple(records))

    def _is_begun(self, rest: bytes) -> bool:
        """Whether this is the beginning of the next record, and not all of it."""
        if len(rest) < _HEAD.size:
            return self._marker.startswith(rest[: len(self._marker)])
        head = self._head_at(rest, 0)
        return head is not None and head.offset == self.next_offset and len(rest) < _HEAD.size + head.size

    def _head_at(self, data: mmap.mmap | bytes, at: int) -> _Head | None:
        """The head of a record, if there is one."""
        found = data[at : at + _HEAD.size]
        if len(found) < _HEAD.size or not found.startswith(self._marker) or _summed(found) != found:
            return None
        return _Head(*_HEAD.unpack(found)[1:-1])

    def _record_at(self, data: mmap.mmap, at: int) -> Record | None:
        """The record that begins at a byte, if there is a whole one."""
        head = self._head_at(data, at)
        if head is None:
            return None
        body = data[at + _HEAD.size : at + _HEAD.size + head.size]
        if len(body) < head.size or crc32(body) != head.checksum:
            return None
        split = 1 + body[0]
        return Record(head.offset, body[1:split].decode(), body[split:], head.checksum)


def _file_head(marker: bytes, first: int, checksum: int) -> bytes:
    return _summed(_FILE.pack(_MAGIC, marker, first, checksum, 0))


def _summed(head: bytes) -> bytes:
    """A head with the checksum of the rest of it at its end."""
    return head[: -_SUM.size] + _SUM.pack(crc32(head[: -_SUM.size]))


def _size(record: Record) -> int:
    """How many bytes a record of the log takes."""
    return _HEAD.size + 1 + len((record.content_type or "").encode()) + len(record.value or b"")
