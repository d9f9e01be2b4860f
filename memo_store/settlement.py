"""A period's value is settled before its first attempt (PROTOCOLS 3).

Round 2 uses the same noise for every attempt at a period, so two attempts over two memos would show both. Before a
device's first report of a period can leave, its cell is written to the period's journal; a later attempt, by whichever
process, finds it there. A journal is a string that only grows, one per shard, 16 bytes for each device: the beginning
of its pseudonym and its sealed cell. Whoever appends must have read to the end first, so two processes cannot settle
one device twice, and a batch of thousands costs Redis one append. It is dropped when the period is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memo_store.history import Call
from memo_store.layout import SHARDS, Words, shard_key, shard_slices

RECENT = 1 << 16


@dataclass(frozen=True)
class Settled:
    """Devices by name (the first 8 bytes of their pseudonyms), ascending, each with its sealed cell."""

    names: Words
    cells: Words

    @classmethod
    def of(cls, names: Words, cells: Words) -> Settled:
        """Sorted; of two entries with one name the first stays."""
        unique, first = np.unique(names, return_index=True)
        return cls(unique, cells[first])

    def find(self, names: Words) -> tuple[NDArray[np.bool_], Words]:
        """Which of these are here, and on what they settled (anything for the others)."""
        if not len(self.names):
            return np.zeros(len(names), dtype=bool), np.zeros(len(names), dtype=np.uint64)
        places = np.searchsorted(self.names, names)
        places[places == len(self.names)] = 0
        return self.names[places] == names, self.cells[places]

    def joined(self, later: Settled) -> Settled:
        """Both; a name that is in both keeps its earlier cell."""
        new = ~self.find(later.names)[0]
        places = np.searchsorted(self.names, later.names[new])
        return Settled(np.insert(self.names, places, later.names[new]), np.insert(self.cells, places, later.cells[new]))


NOBODY = Settled(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64))


class Journal:
    """One attribute's settled cells in one period, as far as this process has read them."""

    def __init__(self, table: str, period: int) -> None:
        self._table = table
        self._period = period
        self._read = [0] * SHARDS
        self._older = self._recent = NOBODY  # two parts, because inserting into a long array is slow

    def find(self, names: Words) -> tuple[NDArray[np.bool_], Words]:
        """Which devices have settled, and on what (anything for the others)."""
        known, cells = self._recent.find(names)
        longer, earlier = self._older.find(names)
        return known | longer, np.where(longer, earlier, cells)

    def propose(self, names: Words, cells: Words) -> list[Call]:
        """Scripts that settle these devices, unless there is something we have not read."""
        settled = Settled.of(names, cells)
        entries = np.stack([settled.names, settled.cells], axis=1).astype("<u8")
        return [
            Call(
                "settle",
                shard,
                journal_key(self._table, shard, self._period),
                (self._read[shard], entries[rows].tobytes()),
            )
            for shard, rows in shard_slices(settled.names)
        ]

    def learn(self, calls: Sequence[Call], unread: Sequence[bytes]) -> None:
        """Take in what scripts returned: what others had written, or nothing, which means that ours was."""
        texts = [theirs or call.arguments[1] for call, theirs in zip(calls, unread, strict=True)]
        for call, text in zip(calls, texts, strict=True):
            self._read[call.shard] += len(text)
        entries = np.frombuffer(b"".join(texts), dtype="<u8").astype(np.uint64).reshape(-1, 2)
        self._recent = self._recent.joined(Settled.of(entries[:, 0], entries[:, 1]))
        if len(self._recent.names) > max(RECENT, len(self._older.names) // 8):
            self._older, self._recent = self._older.joined(self._recent), NOBODY

    def restart(self) -> None:
        """The journal in the store is not the one we read: read it from its beginning."""
        self._read = [0] * SHARDS

    def restate(self) -> list[Call]:
        """Scripts that write all we know, for a store that has lost it."""
        known = self._older.joined(self._recent)
        return self.propose(known.names, known.cells)


def journal_key(table: str, shard: int, period: int) -> str:
    return shard_key(shard, f"{table}@{period}")
