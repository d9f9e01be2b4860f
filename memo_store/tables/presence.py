"""The presence of single devices in Redis: each one's last delivered period and number of reports, 4 bytes each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Call
from memo_store.connection.layout import PSEUDONYM, Placed, read_fields, shard_key
from memo_store.connection.link import Command
from protocols.survey import MAX_PERIOD

PRESENCE = np.dtype([("last", "<u4"), ("reports", "<u4")])
NEVER = -1
ABSENT = np.array((MAX_PERIOD, 0), dtype=PRESENCE).tobytes()


@dataclass(frozen=True)
class PresenceTable:
    """The presence records of one survey."""

    name: str

    def read(self, placed: Placed) -> list[Command]:
        return read_fields(self.name, placed)

    def parse(self, answers: Sequence[Sequence[bytes | None]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Each device's last period (or NEVER) and number of reports."""
        records = [record or ABSENT for record in chain.from_iterable(answers)]
        presences = np.frombuffer(b"".join(records), dtype=PRESENCE)
        last = presences["last"].astype(np.int64)
        last[last == MAX_PERIOD] = NEVER
        return last, presences["reports"].astype(np.int64)

    def deliver(self, placed: Placed, period: int) -> list[Call]:
        """Scripts that record a delivered report of these devices."""
        return [
            Call("deliver", shard, shard_key(shard, self.name), (placed.pseudonyms[rows].tobytes(), PSEUDONYM, period))
            for shard, rows in placed.shards()
        ]
