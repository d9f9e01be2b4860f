"""What a device reports in a period is committed before the first attempt to report it (PROTOCOLS 3).

Round 2 uses the same noise for every attempt at a period, so two attempts over two memos would show both. Before a
device's first report of a period can be sent, what it reports is appended to the period's commits: the tag of its memo
entry, or in a one-shot survey its value. A later attempt, by any process, finds it there, and reports the same even if
the device's record has filled since. The commits of a period are a string per attribute and shard that only grows, 16
bytes for each device: the first 8 bytes of its pseudonym and its sealed tag or value. A process may append only after
it has read to the end, so two processes cannot commit different things for one device, and a batch of thousands costs
Redis one append.

When the period is closed, a mark replaces the string for a while. It stops a process that has checked the period before
that, or whose clock is behind, from committing anything else than what was reported.
"""

from collections.abc import Sequence

import numpy as np

from memo_store.connection.epochs import Call, Epochs, script
from memo_store.connection.layout import SHARDS, firsts, shard_key, shard_slices
from memo_store.connection.link import Command
from protocols.arrays import Mask, Words
from protocols.errors import StoreError

CLOSED = "-"
"""The mark of a closed period: shorter than any commit."""
CLOSED_SECONDS = 3600
"""How long the mark stays. The clocks of all processes must differ by less."""


class PeriodCommits:
    """One attribute's commits in one period, as far as this process has read them: by device, sealed.

    Of each device the first one counts, and never changes.
    """

    def __init__(self, epochs: Epochs, survey: str, table: str, period: int) -> None:
        self._names = self._sealed = np.empty(0, dtype=np.uint64)  # names ascending
        self._epochs = epochs
        self._survey = survey
        self._table = table
        self._period = period
        self._read = [0] * SHARDS

    def find(self, names: Words) -> tuple[Mask, Words]:
        """Which devices have committed, and the sealed words (anything for the others)."""
        if not len(self._names):
            return np.zeros(len(names), dtype=np.bool_), np.zeros(len(names), dtype=np.uint64)
        found = np.minimum(np.searchsorted(self._names, names), len(self._names) - 1)
        return self._names.take(found) == names, self._sealed.take(found)

    def read_on(self, names: Words) -> bool:
        """Read on in the shards of these devices (ascending). Returns whether others have committed anything meanwhile.

        Raises StoreError if the period is closed.
        """
        return not self._learn([self._call(shard, b"") for shard, _ in shard_slices(names)])

    def committing(self, names: Words, sealed: Words) -> Words:
        """The sealed words that count for these devices (ascending): those committed before, else these.

        Raises StoreError if the period is closed.
        """
        committed = False
        while not committed:
            known, found = self.find(names)
            committed = self._append(names[~known], sealed[~known])
        return np.where(known, found, sealed)

    def restore(self) -> None:
        """Append all commits this process knows to a store that has lost them, after what others have appended."""
        self._read = [0] * SHARDS
        names, sealed = self._names, self._sealed
        while not self._append(names, sealed):
            pass

    def _append(self, names: Words, sealed: Words) -> bool:
        """Append commits to the strings of their shards. False if others had appended: their commits are now known."""
        commits = np.stack([names, sealed], axis=1).astype("<u8")
        return self._learn([self._call(shard, commits[rows].tobytes()) for shard, rows in shard_slices(names)])

    def _call(self, shard: int, text: bytes) -> Call:
        return Call("commit", shard, commits_key(self._table, shard, self._period), (self._read[shard], text))

    def _learn(self, calls: list[Call]) -> bool:
        unread = [text for (text,) in self._epochs.run(calls)]
        if None in unread:
            raise period_closed(self._survey, self._period)
        texts = [theirs or call.arguments[1] for call, theirs in zip(calls, unread, strict=True)]
        for call, text in zip(calls, texts, strict=True):
            self._read[call.shard] += len(text)
        learned = np.frombuffer(b"".join(texts), dtype="<u8").astype(np.uint64).reshape(-1, 2)
        names, sealed = (np.concatenate(pair) for pair in ((self._names, learned[:, 0]), (self._sealed, learned[:, 1])))
        order = np.argsort(names, kind="stable")  # those that were known come first, and are in order already
        names = names.take(order)
        first = np.flatnonzero(firsts(names))
        self._names, self._sealed = names.take(first), sealed.take(order.take(first))
        return not any(unread)


def period_closed(survey: str, period: int) -> StoreError:
    return StoreError(f"period {period} of survey {survey!r} is closed", "continue with a later period")


def close_commits(tables: Sequence[str], periods: Sequence[int]) -> list[Command]:
    """Commands that replace the commits of closed periods by the mark: one for each shard."""
    keys = [[commits_key(table, shard, period) for table in tables for period in periods] for shard in range(SHARDS)]
    return [("EVAL", script("close"), len(own), *own, CLOSED, CLOSED_SECONDS) for own in keys]


def commits_key(table: str, shard: int, period: int) -> str:
    return shard_key(shard, f"{table}@{period}")
