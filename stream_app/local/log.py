"""An append-only log in a file: takes the place of a partition of the reports topic in the embedded app.

A process that is killed while appending leaves an incomplete last record; a machine that loses power may leave any
bytes after the last sync. Both are cut off when the log is opened again: no sender has had a confirmation for them.
Other damage may have come later, to records that were confirmed: they are cut off, too, but kept in a file beside the
log, and told.

A sync that fails is not tried again on the same file. The kernel may have dropped what it could not write, and still
show it to whoever reads: the next sync would succeed without it. What was not confirmed is written to a new file, and
that is synced. A process that did not end well may have met such a failure and told nobody, so whoever opens its log
begins with a new file, too.

Records are needed until the state contains them. Then a new file takes the place of this one, once it is large.
Offsets go on: the head of the file says which one is the first, and what was before it.
"""

import mmap
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from protocols.errors import LogError
from servers.private_files import create_private, open_private, write_private
from stream_app.counting.judging import Record
from stream_app.local.records import FILE_HEAD_BYTES, HEAD_BYTES, MARKER_BYTES, FileHead, Records, size_of
from stream_app.log.marks import NO_EPOCH

LARGE_BYTES = 1 << 20
"""How large a log may be before it begins anew."""
SAME_BACKUP = "restore the logs and the results from the same backup"
OR_RECOVER = f"{SAME_BACKUP}; or let the rest go on: `hearsay recover --data` shows what is lost, if anything is"


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
        self._unsynced: list[bytes] = []  # what was appended since the last sync: it is written again if that fails
        self.unsynced_bytes = 0
        if not path.exists():
            if confirmed:
                raise LogError(f"{path} is missing, but the state has offsets up to {confirmed - 1}", OR_RECOVER)
            create_private(path, FileHead(secrets.token_bytes(MARKER_BYTES), 0, NO_EPOCH).encode())
        self._file: IO[bytes] = open_private(path, "r+b")
        try:
            head = FileHead.read(self._file.read(FILE_HEAD_BYTES), path)
            self._records, self.next_offset, self._checksum = Records(head.marker), head.first, head.checksum
            with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                end = self._read(data, confirmed)
                self.cut = self._keep_aside(data, end)
                is_closed_well = end == len(data) and not self.unread
                good = b"" if is_closed_well else data[:end]
            if self.cut is not None:
                note(self.cut)
            if is_closed_well:
                self._file.seek(end)
            else:
                self._begin_with(good)
        except BaseException:
            self._file.close()
            raise
        self._synced_bytes = end

    def append(self, content_type: str, value: bytes) -> Record:
        record, data = self._records.encode(self.next_offset, content_type, value)
        self._file.write(data)
        self._unsynced.append(data)
        self.unsynced_bytes += len(data)
        self.next_offset, self._checksum = record.offset + 1, record.epoch
        return record

    def sync(self) -> None:
        """Put on disk what was appended. Raises OSError if that cannot be done, also not with a new file."""
        if self._unsynced:
            self._file.flush()
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                self._write_again(error)
            self._note_synced()

    def forget(self) -> None:
        """Begin anew if the log is large. All its records must be durable in what is made of them.

        A crash leaves the old file or the new one.
        """
        if self._file.tell() >= LARGE_BYTES:
            self._begin_with(FileHead(self._records.marker, self.next_offset, self._checksum).encode())
            self._note_synced()

    def close(self) -> None:
        with suppress(OSError):  # of a full disk: what was not synced was not confirmed
            self._file.close()

    def _note_synced(self) -> None:
        self._synced_bytes = self._file.tell()
        self._unsynced.clear()
        self.unsynced_bytes = 0

    def _write_again(self, failed: OSError) -> None:
        """Take a new file, with what is on disk and with what could not be synced. Raises OSError if that fails, too.

        What is on disk is read back and compared with its checksums: where the disk has lost some of it, this process
        must not confirm anything any more.
        """
        import structlog  # takes time, and is seldom needed

        log = structlog.get_logger(__name__)
        on_disk = self._path.read_bytes()[: self._synced_bytes]
        head = FileHead.read(on_disk, self._path)
        whole = self._records.from_byte(on_disk, FILE_HEAD_BYTES, head.first)
        ends = [FILE_HEAD_BYTES, *(end for end, _ in whole)]
        if ends[-1] != self._synced_bytes:
            raise failed
        self._begin_with(on_disk + b"".join(self._unsynced))
        about = {"log": str(self._path), "error": str(failed), "bytes": self.unsynced_bytes}
        log.error("a sync failed: what was not confirmed is in a new file; look at the disk", **about)

    def _begin_with(self, data: bytes) -> None:
        """Put a file with these bytes in the place of this one; they are on disk when this returns."""
        write_private(self._path, data)
        with suppress(OSError):  # what the old file could not take is in the new one
            self._file.close()
        self._file = open_private(self._path, "r+b")
        self._file.seek(len(data))

    def _read(self, data: mmap.mmap, confirmed: int) -> int:
        """Read the records, up to the first one that is not whole. Returns where they end."""
        end, self.confirmed_checksum = FILE_HEAD_BYTES, self._checksum
        if confirmed < self.next_offset:
            raise LogError(
                f"{self._path} begins with offset {self.next_offset}, but the state goes on at {confirmed}", SAME_BACKUP
            )
        for record_end, record in self._records.from_byte(data, FILE_HEAD_BYTES, self.next_offset):
            end = record_end
            if record.offset < confirmed:
                self.confirmed_checksum = record.epoch
            else:
                self.unread.append(record)
            self.next_offset, self._checksum = record.offset + 1, record.epoch
        if self.next_offset < confirmed:
            what = "ends before" if end == len(data) else "is damaged at"
            raise LogError(
                f"{self._path} {what} offset {self.next_offset}, but the state has offsets up to {confirmed - 1}",
                OR_RECOVER,
            )
        return end

    def _keep_aside(self, data: mmap.mmap, end: int) -> Cut | None:
        """Keep what stands behind the last good record, unless it is what an interrupted append leaves."""
        records = tuple(self._records.wherever(data, end))
        rest = data[end:]
        if not records and is_interrupted(self._records, rest, self.next_offset):
            return None
        file = self._path.with_suffix(f".cut-{self.next_offset}")
        write_private(file, rest)
        return Cut(file, self.next_offset, len(rest) - sum(map(size_of, records)), records)


def is_interrupted(records: Records, rest: bytes, offset: int) -> bool:
    """Whether bytes are what an interrupted append of this offset leaves: nothing, or its beginning and not all of it.

    A sync that never came may leave zeros.
    """
    if not any(rest):
        return True
    if len(rest) < HEAD_BYTES:
        return records.marker.startswith(rest[: len(records.marker)])
    head = records.head_at(rest, 0)
    return head is not None and head.offset == offset and len(rest) < head.whole
