"""Memos in Redis: one record per device and question, which holds all of its memos and is its ledger.

    record = entry entry ...        in the order of creation
    entry  = tag (8 bytes), sealed memo

How many values a device has memoised is the record's length. A survey with a cap has records of its own, whose entries
are tags alone: what the device has used in this survey. From its cap-th entry on, it uses the last one for good,
whatever its value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Call, Epochs
from memo_store.connection.layout import CHUNK, PSEUDONYM, Placed, read_fields, shard_key, shard_slices
from memo_store.connection.link import Link
from protocols.arrays import Bytes, Devices, Mask, Words

TAG = 8
DEVICE = 8
HELD_BYTES = 128 << 20
"""About five million memos of a few bytes, for all attributes of a survey. Those beyond are asked for each time."""
Entries = tuple[Words, Bytes]  # tags and sealed memos
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class MemoTable:
    """The records of one attribute. `memo_bytes` is 0 where entries are tags alone."""

    name: str
    memo_bytes: int
    cap: int | None

    @property
    def width(self) -> int:
        """Bytes of an entry."""
        return TAG + self.memo_bytes

    def counts(self, records: Sequence[bytes]) -> NDArray[np.int64]:
        """How many memos each record holds."""
        return np.fromiter(map(len, records), np.int64, len(records)) // self.width

    def find(self, link: Link, placed: Placed, tags: Words) -> tuple[Mask, Words, Bytes]:
        """Which devices are known to have an entry, its tag and the sealed memo (undefined for the others).

        A device's entry is the last one in a full record, else the one with its tag. Devices are in a random order.
        After a batch in which most have none, no more are read.
        """
        found, tags = np.zeros(len(tags), dtype=np.bool_), tags.copy()
        sealed = np.zeros((len(tags), self.memo_bytes), dtype=np.uint8)
        for rows in placed.slices(CHUNK):
            answers = link.run(read_fields(self.name, placed.part(rows)))
            records = [record or b"" for record in chain.from_iterable(answers)]
            counts = self.counts(records)
            entry_tags, memos = self._parse(records)
            owners = np.repeat(np.arange(len(records)), counts)
            matching = np.flatnonzero(entry_tags == tags[rows][owners])
            chosen = np.full(len(records), -1)
            chosen[owners[matching]] = matching
            if self.cap is not None:
                full = counts >= self.cap
                chosen[full] = np.cumsum(counts)[full] - 1
            known = np.flatnonzero(chosen >= 0)
            at, chosen = rows.start + known, chosen[known]
            found[at], tags[at], sealed[at] = True, entry_tags[chosen], memos[chosen]
            if 2 * len(known) < len(records):
                break
        return found, tags, sealed

    def create(self, epochs: Epochs, placed: Placed, make: Callable[[slice], Entries]) -> Entries:
        """Propose entries. Returns those that count: ours, another process's, or those held at the cap."""
        count = len(placed.order)
        tags, sealed = np.empty(count, dtype=np.uint64), np.empty((count, self.memo_bytes), dtype=np.uint8)
        for batch in placed.slices(CHUNK) if count else ():
            part, (own, memos) = placed.part(batch), make(batch)
            entries = np.concatenate([own.astype("<u8").view(np.uint8).reshape(-1, TAG), memos], axis=1)
            proposals = [
                Call(
                    "create",
                    shard,
                    shard_key(shard, self.name),
                    (part.pseudonyms[rows].tobytes(), PSEUDONYM, entries[rows].tobytes(), self.width, self.cap or 0),
                )
                for shard, rows in shard_slices(part.names)
            ]
            tags[batch], sealed[batch] = self._parse(epochs.run(proposals))
        return tags, sealed

    def _parse(self, entries: Sequence[bytes]) -> Entries:
        """The tag of each entry, and the sealed memo."""
        rows = np.frombuffer(b"".join(entries), dtype=np.uint8).reshape(-1, self.width)
        return np.ascontiguousarray(rows[:, :TAG]).view("<u8")[:, 0], rows[:, TAG:]


class FirstRows(Generic[T]):
    """Rows by name (8 bytes), in memory: the first row of a name counts, and never changes."""

    def __init__(self, nothing: NDArray[T]) -> None:
        """`nothing`: no rows, of the shape and type of all later ones."""
        self.names = np.empty(0, dtype=np.uint64)  # ascending
        self.rows = nothing

    def find(self, names: Words) -> tuple[Mask, NDArray[T]]:
        """Which names are known, and their rows (anything for the others)."""
        if not len(self.names):
            return np.zeros(len(names), dtype=np.bool_), np.zeros((len(names), *self.rows.shape[1:]), self.rows.dtype)
        found = np.minimum(np.searchsorted(self.names, names), len(self.names) - 1)
        return self.names.take(found) == names, self.rows.take(found, axis=0)

    def add(self, names: Words, rows: NDArray[T]) -> None:
        """Names in any order, also more than once. Those that are known keep their rows."""
        new = np.flatnonzero(~self.find(names)[0])
        added, first = np.unique(names[new], return_index=True)
        where = np.searchsorted(self.names, added)
        self.names = np.insert(self.names, where, added)
        self.rows = np.insert(self.rows, where, rows[new[first]], axis=0)


class HeldMemos:
    """The memos that this process has read or created: none ever changes, so none is read again.

    Without them a simulated collection of 25 periods takes one and a half times the CPU: each report would ask Redis
    for what it answered in the period before.
    """

    def __init__(self, memo_bytes: int, room: int) -> None:
        """`room`: bytes that they may take."""
        self._first = FirstRows(np.empty((0, DEVICE + memo_bytes), dtype=np.uint8))
        self._most = room // (TAG + DEVICE + memo_bytes)

    def find(self, devices: Devices, tags: Words) -> tuple[Mask, Bytes]:
        """Which are held, and the memos (anything for the others). Two devices may have the same tag, by chance."""
        found, rows = self._first.find(tags)
        owners = np.ascontiguousarray(rows[:, :DEVICE]).view("<u8")[:, 0]
        return found & (owners == devices), rows[:, DEVICE:]

    def add(self, devices: Devices, tags: Words, memos: Bytes) -> None:
        if len(self._first.names) + len(tags) <= self._most:
            owners = devices.astype("<u8").view(np.uint8).reshape(-1, DEVICE)
            self._first.add(tags, np.concatenate([owners, memos], axis=1))
