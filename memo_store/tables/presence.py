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
Presences = NDArray[np.void]
"""Records, as PRESENCE."""
NEVER = -1
ABSENT = np.array((MAX_PERIOD, 0), dtype=PRESENCE).tobytes()


@dataclass(frozen=True)
class PresenceTable:
    """The presence records of one survey."""

    name: str

    def read(self, placed: Placed) -> list[Command]:
        return read_fields(self.name, placed)

    def parse(self, answers: Sequence[Sequence[bytes | None]]) -> Presences:
        """The records of devices, in the order in which they were asked for."""
        records = [record or ABSENT for record in chain.from_iterable(answers)]
        return np.frombuffer(b"".join(records), dtype=PRESENCE)

    def deliver(self, placed: Placed, period: int, following: Presences | None = None) -> list[Call]:
        """Scripts that record a delivered report of these devices.

        `following`: what their records become, if nobody else writes to the store until then.
        """
        known = np.empty(0, dtype=PRESENCE) if following is None else following
        return [
            Call(
                "deliver",
                shard,
                shard_key(shard, self.name),
                (placed.pseudonyms[rows].tobytes(), PSEUDONYM, period, known[rows].tobytes()),
            )
            for shard, rows in placed.shards()
        ]


def last_periods(presences: Presences) -> NDArray[np.int64]:
    """The last period in which each device has reported, or NEVER."""
    last = presences["last"].astype(np.int64)
    last[last == MAX_PERIOD] = NEVER
    return last


def after_delivery(presences: Presences, period: int) -> Presences:
    """What records become when a report is delivered. A period before the last one changes nothing.

    >>> after_delivery(np.array([(MAX_PERIOD, 0), (5, 2), (8, 4)], dtype=PRESENCE), 7).tolist()
    [(7, 1), (7, 3), (8, 4)]
    """
    following, new = presences.copy(), last_periods(presences) < period
    following["last"][new] = period
    following["reports"] += new
    return following
