"""A period's value is settled before its first attempt (PROTOCOLS 3).

Round 2 uses the same noise for every attempt at a period, so two attempts over two memos would show both. Before a
device's first report of a period can leave, its cell is written to the period's journal; a later attempt, by whichever
process, finds it there. A journal is a string that only grows, one per shard, 16 bytes for each device: the beginning
of its pseudonym and its sealed cell. Whoever appends must have read to the end first, so two processes cannot settle
one device twice, and a batch of thousands costs Redis one append.

When the period is over, a mark takes the journal's place for a while: whoever is still on the way to it, or has a clock
that is behind, must not settle anew what others have reported.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Call
from memo_store.connection.layout import SHARDS, Words, shard_key, shard_slices
from memo_store.connection.link import Command
from memo_store.tables.cell_table import CellTable

ENDED = "-"  # shorter than any entry
ENDED_SECONDS = 3600
"""How long it is remembered that a journal has ended; clocks differ by less."""


class Journal:
    """One attribute's settled cells in one period, as far as this process has read them."""

    def __init__(self, table: str, period: int) -> None:
        self._table = table
        self._period = period
        self._read = [0] * SHARDS
        self._known = CellTable()

    def find(self, names: Words) -> tuple[NDArray[np.bool_], Words]:
        """Which devices have settled, and on what (anything for the others)."""
        return self._known.find(names)

    def propose(self, names: Words, cells: Words) -> list[Call]:
        """Scripts that settle these devices (ascending), unless there is something we have not read."""
        entries = np.stack([names, cells], axis=1).astype("<u8")
        return [
            Call(
                "settle",
                shard,
                journal_key(self._table, shard, self._period),
                (self._read[shard], entries[rows].tobytes()),
            )
            for shard, rows in shard_slices(names)
        ]

    def learn(self, calls: Sequence[Call], unread: Sequence[bytes]) -> None:
        """Take in what scripts returned: what others had written, or nothing, which means that ours was."""
        texts = [theirs or call.arguments[1] for call, theirs in zip(calls, unread, strict=True)]
        for call, text in zip(calls, texts, strict=True):
            self._read[call.shard] += len(text)
        entries = np.frombuffer(b"".join(texts), dtype="<u8").astype(np.uint64).reshape(-1, 2)
        self._known.add(entries[:, 0], entries[:, 1])

    def restart(self) -> None:
        """The journal in the store is not the one we read: read it from its beginning."""
        self._read = [0] * SHARDS

    def restate(self) -> list[Call]:
        """Scripts that write all we know, for a store that has lost it."""
        names, cells = self._known.entries()
        order = np.argsort(names)
        return self.propose(names[order], cells[order])


def end_journals(table: str, period: int) -> list[Command]:
    """Commands that drop what was settled in a period that is over."""
    return [("SET", journal_key(table, shard, period), ENDED, "EX", ENDED_SECONDS) for shard in range(SHARDS)]


def journal_key(table: str, shard: int, period: int) -> str:
    return shard_key(shard, f"{table}@{period}")
