"""What an operator may accept of a local log: damage among the records that the state contains, or a log without them.

The state needs none of these records any more. What it does not contain is read on from the first record after them,
as far as it is whole. What is not whole there is lost, and how many reports that is at most is known.

A log of another backup is no damage: it may have records that were never counted.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from zlib import crc32

from protocols.errors import StateError
from protocols.scheme import Scheme
from servers.private_files import write_private
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.local.embedded import NO_LIMIT, lock_to_count, log_file, reports_in
from stream_app.local.log import is_interrupted
from stream_app.local.records import FILE_HEAD_BYTES, HEAD_BYTES, MARKER_BYTES, FileHead, Records, size_of
from stream_app.local.store import FILE, LocalStore
from stream_app.log.flushes import Write, state_key
from stream_app.log.marks import Acceptance, Mark


@dataclass(frozen=True)
class Damage:
    """What is wrong with a log whose state contains the records before `confirmed`, and what can be read on."""

    what: str
    marker: bytes
    whole: bytes
    """The records after those that the state contains, as far as they follow each other."""
    lost: tuple[Record, ...] = ()
    """Records behind others that are damaged ..."""
    lost_bytes: int = 0
    """... and the bytes of those."""


@dataclass(frozen=True)
class DamagedLog:
    """A log that is not read on until an operator accepts its damage; at most `lost` reports are lost with it."""

    file: Path
    partition: int
    next_offset: int
    mark: Mark
    damage: Damage
    lost: int

    @property
    def kept(self) -> Path:
        """Where the damaged file is kept, once it is accepted."""
        return self.file.with_suffix(f".damaged-{self.next_offset}")


def find_damage(path: Path, confirmed: int, checksum: int) -> Damage | None:
    """The damage of a log among its `confirmed` records; None if there is none, or it is another log.

    `checksum` is that of the last of them, as the state has it. Raises LogError if the head of the file is damaged.
    """
    if not path.exists():
        nothing = Damage("it is missing", secrets.token_bytes(MARKER_BYTES), b"")
        return nothing if confirmed else None
    data = path.read_bytes()
    head = FileHead.read(data, path)
    records, end, expected = Records(head.marker), FILE_HEAD_BYTES, head.first
    for record_end, record in records.from_byte(data, end, head.first):
        if record.offset == confirmed:
            break
        end, expected = record_end, record.offset + 1
    if expected >= confirmed:
        return None
    begin = _begin_of_the_rest(records, data, end, confirmed, checksum)
    rest = data[begin:]
    whole = list(records.from_byte(rest, 0, confirmed))
    whole_bytes = whole[-1][0] if whole else 0
    behind = rest[whole_bytes:]
    lost = tuple(records.wherever(behind, 0))
    is_lost = bool(lost) or not is_interrupted(records, behind, confirmed + len(whole))
    lost_bytes = len(behind) - sum(map(size_of, lost)) if is_lost else 0
    what = f"record {expected} is damaged" if end < len(data) else f"it ends before record {expected}"
    return Damage(what, head.marker, rest[:whole_bytes], lost, lost_bytes)


def _begin_of_the_rest(records: Records, data: bytes, at: int, confirmed: int, checksum: int) -> int:
    """Where what the state does not contain begins, behind damage that begins at this byte.

    A head that is whole says of which record damaged bytes are. Bytes of which nothing says it count as not contained.
    """
    contained = at
    while (at := data.find(records.marker, at)) >= 0:
        head = records.head_at(data, at)
        if head is None:
            at += 1
        elif head.offset < confirmed:
            at = contained = min(at + head.whole, len(data))
            if head.offset == confirmed - 1:
                return contained
        else:
            return at if head.offset == confirmed else contained
    body = data[contained + HEAD_BYTES :]
    is_the_last = crc32(body) == checksum  # of the last record in the state: only its head is damaged
    return len(data) if is_the_last else contained


def damaged_logs(directory: Path, clock_key: bytes, lost: int | None = None) -> list[DamagedLog]:
    """The logs of a directory that are damaged in what the state contains.

    With `lost`, they are accepted: every period that is open has as many more reports in its shortfall as were found to
    be lost, and `lost` besides. The damaged file is kept beside the new one. Raises StateError if the directory is in
    use, or has no state.
    """
    check_state(directory)
    lock = lock_to_count(directory)
    try:
        with closing(LocalStore.to_write(directory)) as store:
            found = list(_damaged(directory, store, clock_key))
            if lost is not None:
                for one in found:
                    _accept(store, one, lost)
            return found
    finally:
        os.close(lock)


def check_state(directory: Path) -> None:
    """Refuse a directory in which nothing was counted. It need not be there."""
    if not (directory / FILE).exists():
        raise StateError(f"{directory} has no state of a collection", "name the data directory of `hearsay serve`")


def _damaged(directory: Path, store: LocalStore, clock_key: bytes) -> Iterator[DamagedLog]:
    schemes = {survey.id: Scheme(survey) for survey in store.surveys()}
    partitions = int(store.setting("partitions", "1"))
    for partition in range(partitions):
        state = store.records(f"count/{partition}/")
        counter = PartitionCounter(
            partition, partitions, schemes.get, clock_key, state, surveys=schemes, limit=NO_LIMIT
        )
        file = log_file(directory, partition)
        damage = find_damage(file, counter.next_offset, counter.mark.epoch)
        if damage is not None:
            lost = _reports_lost(damage, schemes, clock_key)
            yield DamagedLog(file, partition, counter.next_offset, counter.mark, damage, lost)


def _reports_lost(damage: Damage, schemes: dict[str, Scheme], clock_key: bytes) -> int:
    records: Sequence[Record] = damage.lost
    return reports_in(records, damage.lost_bytes, schemes.get, clock_key)


def _accept(store: LocalStore, log: DamagedLog, lost: int) -> None:
    """Let a log go on. After a crash in it, it may be accepted again: then this counts, and not what was before."""
    if log.file.exists():
        write_private(log.kept, log.file.read_bytes())
    if log.lost + lost:
        mark = replace(log.mark, acceptances=log.mark.acceptances + 1)
        accepted = Acceptance(mark, log.lost + lost).encode()
        store.write([Write(state_key("count", log.partition, "accepted"), accepted)])
    head = FileHead(log.damage.marker, log.next_offset, log.mark.epoch)
    write_private(log.file, head.encode() + log.damage.whole)
