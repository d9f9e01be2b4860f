"""An append-only log in a file: takes the place of a partition of the reports topic in the embedded app.

    file      "hearsay1" | marker: 4 random bytes | first offset: u64 | CRC-32 of the body before it: i64 | CRC-32: u32
    record    marker | length of the body: u32 | offset: u64 | CRC-32 of the body: u32 | CRC-32 of these: u32 | body
    body      length of the content type: u8 | content type | value

A process that is killed while appending leaves an incomplete last record; a machine that loses power may leave any
bytes after the last sync. Both are cut off when the log is opened again: no sender has had a confirmation for them.
Other damage may have come later, to records that were confirmed: they are cut off, too, but kept in a file beside the
log, and told. The marker finds whole records behind damaged bytes. It is random, so no sender can put one into a value.

Records that nobody needs are dropped by writing the rest to another file, which then takes the place of this one.
Offsets go on: the head of the file says which one is the first, and what was before it.
"""

import mmap
import os
import secrets
import shutil
import struct
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple
from zlib import crc32

from protocols.errors import LogError
from servers.private_files import create_private, open_private, sync_directory, write_private
from stream_app.counting.judging import Record
from stream_app.log.codec import ANOTHER_RELEASE
from stream_app.log.marks import NO_EPOCH

DROPPED_BYTES = 1 << 20
"""A log is written again without the records that are not needed if they have so many bytes, and more than the rest."""
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
    """

    def __init__(self, path: Path, confirmed: int, note: Callable[[Cut], None] = lambda cut: None) -> None:
        self._path = path
        self._starts = array("Q")  # the byte at which each record begins
        self._worth = DROPPED_BYTES
        if not path.exists():
            if confirmed:
                raise LogError(f"{path} is missing, but the state has offsets up to {confirmed - 1}", SAME_BACKUP)
            create_private(path, _file_head(secrets.token_bytes(4), 0, NO_EPOCH))
        self._draft.unlink(missing_ok=True)
        self._file: IO[bytes] = open_private(path, "r+b")
        try:
            self._marker, self.first, self._checksum = self._read_head()
            self._end = _FILE.size
            with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                self._measure(data, confirmed)
                self.confirmed_checksum = self._checksum_before(confirmed, data)
                self.cut = self._keep_aside(data)
            if self.cut is not None:
                note(self.cut)
            self._file.truncate(self._end)
            self._file.seek(self._end)
        except BaseException:
            self._file.close()
            raise
        self._unsynced = True  # what an earlier process appended may not be on disk yet

    @property
    def next_offset(self) -> int:
        return self.first + len(self._starts)

    def append(self, content_type: str, value: bytes) -> Record:
        name = content_type.encode()
        body = bytes([len(name)]) + name + value
        record = Record(self.next_offset, content_type, value, crc32(body))
        self._file.write(_head(self._marker, _Head(len(body), record.offset, record.epoch)) + body)
        self._unsynced = True
        self._starts.append(self._end)
        self._end += _HEAD.size + len(body)
        return record

    def sync(self) -> None:
        if self._unsynced:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._unsynced = False

    def read(self, first: int = 0) -> Iterator[Record]:
        """The records from offset `first` on."""
        self._file.flush()
        with self._path.open("rb") as file:
            for start in self._starts[max(0, first - self.first) :]:
                file.seek(start)
                _, size, offset, checksum, _ = _HEAD.unpack(file.read(_HEAD.size))
                body = file.read(size)
                if crc32(body) != checksum:
                    raise LogError(f"{self._path}: record {offset} is damaged", "restore the directory from a backup")
                yield _record(offset, body, checksum)

    def shorten(self, first: int) -> None:
        """Drop the records before an offset, if that is worth it. They must be durable in what is made of them.

        A crash leaves the file as it was or as it is to be: a draft is on disk as a whole before it takes its place.
        """
        self.sync()
        start = self._starts[first - self.first] if first < self.next_offset else self._end
        dropped = start - _FILE.size
        if dropped < max(self._worth, self._end - start):
            return
        try:
            checksum = self._write_draft(first, start)
        except OSError:  # the disk has no room for a second file, but perhaps for many more records
            self._draft.unlink(missing_ok=True)
            self._worth = 2 * dropped
            return
        self._draft.replace(self._path)
        sync_directory(self._path.parent)
        self._file.close()
        self._file = open_private(self._path, "r+b")
        self._starts = array("Q", (at - dropped for at in self._starts[first - self.first :]))
        self.first, self._checksum, self._end = first, checksum, self._end - dropped
        self._file.seek(self._end)

    def _write_draft(self, first: int, start: int) -> int:
        """Write the records from an offset on, which begin at a byte. Returns the checksum of the record before."""
        with self._path.open("rb") as old, open_private(self._draft, "wb") as new:
            with mmap.mmap(old.fileno(), 0, access=mmap.ACCESS_READ) as data:
                checksum = self._checksum_before(first, data)
            new.write(_file_head(self._marker, first, checksum))
            old.seek(start)
            shutil.copyfileobj(old, new)
            new.flush()
            os.fsync(new.fileno())
        return checksum

    def close(self) -> None:
        with suppress(OSError):  # of a full disk: what was not synced was not confirmed
            self._file.close()

    @property
    def _draft(self) -> Path:
        return self._path.with_suffix(".draft")

    def _read_head(self) -> tuple[bytes, int, int]:
        """The marker, the first offset, and the checksum of the record before it."""
        head = self._file.read(_FILE.size)
        if not head.startswith(_MAGIC):
            raise LogError(f"{self._path} is not a log of this release", ANOTHER_RELEASE)
        if len(head) < _FILE.size or _SUM.pack(crc32(head[: -_SUM.size])) != head[-_SUM.size :]:
            raise LogError(f"the head of {self._path} is damaged", "restore the directory from a backup")
        _, marker, first, checksum, _ = _FILE.unpack(head)
        return marker, first, checksum

    def _measure(self, data: mmap.mmap, confirmed: int) -> None:
        """Find the records, up to the first one that is not whole."""
        if confirmed < self.first:
            raise LogError(
                f"{self._path} begins with offset {self.first}, but the state goes on at {confirmed}", SAME_BACKUP
            )
        while (head := self._head_at(data, self._end)) is not None and head.offset == self.next_offset:
            if head.offset >= confirmed and not _is_whole(data, self._end, head):
                break
            self._starts.append(self._end)
            self._end += _HEAD.size + head.size
        if self.next_offset < confirmed:
            what = "ends before" if self._end == len(data) else "is damaged at"
            raise LogError(
                f"{self._path} {what} offset {self.next_offset}, but the state has offsets up to {confirmed - 1}",
                SAME_BACKUP,
            )

    def _keep_aside(self, data: mmap.mmap) -> Cut | None:
        """Keep what stands behind the last good record, unless it is what an interrupted append leaves."""
        at, records, taken = self._end, [], 0
        while (at := data.find(self._marker, at)) >= 0:
            head = self._head_at(data, at)
            if head is not None and _is_whole(data, at, head):
                body = data[at + _HEAD.size : at + _HEAD.size + head.size]
                records.append(_record(head.offset, body, head.checksum))
                taken += _HEAD.size + head.size
                at += _HEAD.size + head.size
            else:
                at += 1
        rest = data[self._end :]
        if not records and (not any(rest) or self._is_begun(rest)):
            return None
        file = self._path.with_suffix(f".cut-{self.next_offset}")
        write_private(file, rest)
        return Cut(file, self.next_offset, len(rest) - taken, tuple(records))

    def _is_begun(self, rest: bytes) -> bool:
        """Whether this is the beginning of the next record, and not all of it."""
        if len(rest) < _HEAD.size:
            return self._marker.startswith(rest[: len(self._marker)])
        head = self._head_at(rest, 0, shorter=True)
        return head is not None and head.offset == self.next_offset and len(rest) < _HEAD.size + head.size

    def _head_at(self, data: mmap.mmap | bytes, at: int, shorter: bool = False) -> _Head | None:
        """The head of a record, if there is one; also of one that has not all of its body, if that is wanted."""
        if at + _HEAD.size > len(data):
            return None
        marker, *parts, own = _HEAD.unpack_from(data, at)
        head = _Head(*parts)
        if marker != self._marker or own != crc32(data[at : at + _HEAD.size - _SUM.size]):
            return None
        return head if shorter or at + _HEAD.size + head.size <= len(data) else None

    def _checksum_before(self, offset: int, data: mmap.mmap) -> int:
        """The checksum of the record before an offset."""
        if offset == self.first:
            return self._checksum
        head = self._head_at(data, self._starts[offset - self.first - 1])
        assert head is not None
        return head.checksum


def _file_head(marker: bytes, first: int, checksum: int) -> bytes:
    head = _FILE.pack(_MAGIC, marker, first, checksum, 0)[: -_SUM.size]
    return head + _SUM.pack(crc32(head))


def _head(marker: bytes, head: _Head) -> bytes:
    packed = _HEAD.pack(marker, *head, 0)[: -_SUM.size]
    return packed + _SUM.pack(crc32(packed))


def _is_whole(data: mmap.mmap, at: int, head: _Head) -> bool:
    start = at + _HEAD.size
    return crc32(data[start : start + head.size]) == head.checksum


def _record(offset: int, body: bytes, checksum: int) -> Record:
    split = 1 + body[0]
    return Record(offset, body[1:split].decode(), body[split:], checksum)
