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

import numpy as np

from memo_store.connection.epochs import Call, History
from memo_store.connection.layout import SHARDS, Words, shard_key, shard_slices
from memo_store.connection.link import Command
from memo_store.tables.cell_table import CellTable
from protocols.errors import StoreError

ENDED = "-"  # shorter than any entry
ENDED_SECONDS = 3600
"""How long it is remembered that a journal has ended; clocks differ by less."""


class Journal:
    """One attribute's committed cells in one period, as far as this process has read them."""

    def __init__(self, epochs: History, survey: str, table: str, period: int) -> None:
        self._epochs = epochs
        self._survey = survey
        self._table = table
        self._period = period
        self._read = [0] * SHARDS
        self._known = CellTable()

    def commit(self, names: Words, sealed: Words) -> Words:
        """The sealed cells that count for these devices (ascending): those committed before, else these.

        Raises `Lost`, and StoreError if the period is closed.
        """
        committed = False
        while not committed:
            known, found = self._known.find(names)
            committed = self._append(names[~known], sealed[~known])
        return np.where(known, found, sealed)

    def restore(self) -> None:
        """Write all that is known again, to a store that has lost it, together with what others have written there."""
        self._read = [0] * SHARDS
        names, sealed = self._known.entries()
        order = np.argsort(names)
        while not self._append(names[order], sealed[order]):
            pass

    def _append(self, names: Words, sealed: Words) -> bool:
        """Append entries to every shard's string. False if others had appended: their entries are now read."""
        entries = np.stack([names, sealed], axis=1).astype("<u8")
        calls = [
            Call(
                "settle",
                shard,
                journal_key(self._table, shard, self._period),
                (self._read[shard], entries[rows].tobytes()),
            )
            for shard, rows in shard_slices(names)
        ]
        unread = [text for (text,) in self._epochs.run(calls)]
        if None in unread:
            raise period_closed(self._survey, self._period)
        texts = [theirs or call.arguments[1] for call, theirs in zip(calls, unread, strict=True)]
        for call, text in zip(calls, texts, strict=True):
            self._read[call.shard] += len(text)
        learned = np.frombuffer(b"".join(texts), dtype="<u8").astype(np.uint64).reshape(-1, 2)
        self._known.add(learned[:, 0], learned[:, 1])
        return not any(unread)


def period_closed(survey: str, period: int) -> StoreError:
    return StoreError(f"period {period} of survey {survey!r} is closed", "continue with a later period")


def end_journals(table: str, period: int) -> list[Command]:
    """Commands that drop what was settled in a period that is over."""
    return [("SET", journal_key(table, shard, period), ENDED, "EX", ENDED_SECONDS) for shard in range(SHARDS)]


def journal_key(table: str, shard: int, period: int) -> str:
    return shard_key(shard, f"{table}@{period}")
