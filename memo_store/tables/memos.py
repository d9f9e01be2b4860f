"""Memos in Redis: one record per device and question, which holds all of its memos and is its ledger.

    record = entry entry ...        in the order of creation
    entry  = tag (8 bytes), sealed memo

How many values a device has memoised is the record's length. A survey with a cap has records of its own, whose entries
are tags alone: what the device has used in this survey. From its cap-th entry on, it uses the last one for good,
whatever its value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Call
from memo_store.connection.layout import PSEUDONYM, Placed, shard_key
from protocols.arrays import Bytes, Mask, Words

TAG = 8


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

    def pick(self, answers: Sequence[Sequence[bytes | None]], tags: Words) -> tuple[Mask, Words, Bytes]:
        """Which rows have an entry, its tag and the sealed memo (undefined for the others).

        A row's entry is the last one in a full record, else the one with its tag.
        """
        records = [record or b"" for record in chain.from_iterable(answers)]
        counts = self.counts(records)
        entries = np.frombuffer(b"".join(records), dtype=np.uint8).reshape(-1, self.width)
        entry_tags = _tags(entries)
        owners = np.repeat(np.arange(len(records)), counts)
        matching = np.flatnonzero(entry_tags == tags[owners])
        chosen = np.full(len(records), -1)
        chosen[owners[matching]] = matching
        if self.cap is not None:
            full = counts >= self.cap
            chosen[full] = np.cumsum(counts)[full] - 1
        found = chosen >= 0
        picked = entries.take(chosen[found], axis=0)
        tags, sealed = tags.copy(), np.zeros((len(records), self.memo_bytes), dtype=np.uint8)
        tags[found], sealed[found] = _tags(picked), picked[:, TAG:]
        return found, tags, sealed

    def propose(self, placed: Placed, tags: Words, sealed: Bytes) -> list[Call]:
        """Scripts that create these entries, unless the device has one for the tag or is at its cap."""
        entries = np.concatenate([tags.astype("<u8").view(np.uint8).reshape(-1, TAG), sealed], axis=1)
        return [
            Call(
                "create",
                shard,
                shard_key(shard, self.name),
                (placed.pseudonyms[rows].tobytes(), PSEUDONYM, entries[rows].tobytes(), self.width, self.cap or 0),
            )
            for shard, rows in placed.shards()
        ]

    def overrule(
        self, placed: Placed, tags: Words, sealed: Bytes, answers: Sequence[Sequence[Any]]
    ) -> tuple[Words, Bytes]:
        """The proposed tags and memos, with those that were not accepted replaced by the ones that count."""
        tags, sealed = tags.copy(), sealed.copy()
        for (_, rows), answer in zip(placed.shards(), answers, strict=True):
            if not answer:
                continue
            places = rows.start + np.array(answer[::2], dtype=np.intp)
            entries = np.frombuffer(b"".join(answer[1::2]), dtype=np.uint8).reshape(-1, self.width)
            tags[places], sealed[places] = _tags(entries), entries[:, TAG:]
        return tags, sealed


def _tags(entries: Bytes) -> Words:
    return np.ascontiguousarray(entries[:, :TAG]).view("<u8")[:, 0]
