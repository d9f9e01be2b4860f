"""Memos in Redis: one record per device and question, which holds all of its memos and is its ledger.

    record = entry entry ...        in the order of creation
    entry  = tag (8 bytes), sealed memo

How many values a device has memoised is the record's length. A survey with a cap has records of its own, whose entries
are tags alone: what the device has used in this survey. From its cap-th entry on, it uses the last one for good,
whatever its value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Call, Epochs
from memo_store.connection.layout import CHUNK, PSEUDONYM, Placed, read_fields, shard_key, shard_slices
from memo_store.connection.link import Link
from protocols.arrays import Bytes, Devices, Mask, Places, Words

TAG = 8
DEVICE = 8
SAMPLE = 1000
"""The devices of the first batch, which shows whether most have an entry."""
HELD_BYTES = 128 << 20
"""About five million memos of a few bytes, of all attributes of a survey. Beyond that, some are asked for again."""
FEWEST_SLOTS, SLOTS_A_MEMO = 1 << 12, 3
NO_TAG = np.uint64(0)
"""In an empty slot. A memo whose tag it is, one of 2^64, is not held."""
Entries = tuple[Words, Bytes]  # tags and sealed memos


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
        for start, end in pairwise([0, SAMPLE, *range(SAMPLE + CHUNK, len(tags) + CHUNK, CHUNK)]):
            rows = slice(start, end)
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
            at, chosen = start + known, chosen[known]
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


class HeldMemos:
    """The memos that this process has read or created, as far as there is room. None ever changes.

    Without them a simulated collection of 25 periods takes one and a half times the CPU: each report would ask Redis
    for what it answered in the period before.

    A table of slots. A memo is in one of two, which its tag names; a newer one takes an older one's place. Searching
    sorted tags instead takes ten times as long, because each step waits for the one before.
    """

    def __init__(self, memo_bytes: int, room: int) -> None:
        """`room`: bytes that they may take."""
        self._memo = np.dtype((np.void, memo_bytes))
        self._most = room // (TAG + DEVICE + memo_bytes)
        self._empty(min(FEWEST_SLOTS, self._most))

    def find(self, devices: Devices, tags: Words) -> tuple[Mask, Bytes]:
        """Which are held, and the memos (anything for the others). Two devices may have the same tag, by chance."""
        first, second = self._slots(tags)
        slots = np.where(self._tags.take(first) == tags, first, second)
        held = (self._tags.take(slots) == tags) & (self._devices.take(slots) == devices) & (tags != NO_TAG)
        return held, self._bytes(slots)

    def add(self, devices: Devices, tags: Words, memos: Bytes) -> None:
        self._added += len(tags)
        if SLOTS_A_MEMO * self._added > len(self._tags) and 2 * len(self._tags) <= self._most:
            used = np.flatnonzero(self._tags != NO_TAG)
            before = self._devices[used], self._tags[used], self._bytes(used)
            self._empty(min(max(2 * len(self._tags), 2 * SLOTS_A_MEMO * (len(used) + len(tags))), self._most))
            self.add(*before)
            self._added += len(tags)
        first, second = self._slots(tags)
        free = np.flatnonzero(self._tags.take(first) == NO_TAG)
        self._tags[first[free]] = tags[free]
        slots = np.where(self._tags.take(first) == tags, first, second)
        self._tags[slots] = tags
        kept = np.flatnonzero(self._tags.take(slots) == tags)  # of several that took one slot, one
        self._devices[slots[kept]] = devices[kept]
        self._memos[slots[kept]] = np.ascontiguousarray(memos[kept]).view(self._memos.dtype)[:, 0]

    def _bytes(self, slots: Places) -> Bytes:
        return self._memos.take(slots).view(np.uint8).reshape(len(slots), self._memo.itemsize)

    def _empty(self, slots: int) -> None:
        self._tags, self._devices = np.zeros((2, slots), dtype=np.uint64)
        self._memos = np.zeros(slots, dtype=self._memo)
        self._added = 0

    def _slots(self, tags: Words) -> tuple[Places, Places]:
        half, count = np.uint64(32), np.uint64(len(self._tags))
        low, high = (tags & np.uint64(0xFFFFFFFF)) * count >> half, (tags >> half) * count >> half
        return low.astype(np.intp), high.astype(np.intp)
