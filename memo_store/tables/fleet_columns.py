"""The presence of a fleet in Redis. Its devices are numbered from 0, so it is a few columns, not a record per device.

    version      drawn anew with every write: there is one writer at a time, and a second one is detected and refused
    base         sealed, 8 bytes a device: the last period it reported in, plus 1, and how many reports it has made
    0, 1, ...    sealed, a bit a device: which devices have reported in one period since the base
    tally        how many devices have made how many reports

A batch of thousands costs Redis one write of N / 8 bytes. Every 32 periods a new base of 8 N bytes replaces the bits.

Every sealed field is sealed in one piece (`Sealer.seal`), under a new nonce at every write. So one copy of the store
shows how many devices the fleet has, how many periods have passed since the base, and the tally. Two copies also show
that there was a write in between, and how many reports it added. Neither shows which devices reported, or whether they
were the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.layout import shard_key
from memo_store.connection.link import Link
from memo_store.sealing import Sealer
from memo_store.tables.presence import NEVER, PRESENCE
from protocols.randomness import Devices

SHARD = 0
PERIODS_PER_BASE = 32
"""So many bits a device are half of its base: rewriting the base stays rare, and the columns stay below 1.5 bases."""
PERIOD = np.dtype("<u4")


class FleetColumns:
    """The unsealed columns: for each device its last period (or NEVER) and how many reports it has made."""

    def __init__(self, fields: Mapping[bytes, bytes], sealer: Sealer, devices: int = 0) -> None:
        """What these fields of the store hold, with room for at least so many devices."""
        self.version = fields.get(b"version", b"")
        self.entries = sum(field.isdigit() for field in fields)
        base = np.frombuffer(sealer.unseal("base", fields[b"base"]) if b"base" in fields else b"", dtype=PRESENCE)
        entries = [sealer.unseal(str(number), fields.get(b"%d" % number, b"")) for number in range(self.entries)]
        bits = [np.unpackbits(np.frombuffer(entry[PERIOD.itemsize :], dtype=np.uint8)) for entry in entries]
        size = max(devices, *map(len, (base, *bits)))
        self.latest = _fit(base["last"].astype(np.int64), size) + NEVER
        self.reports = _fit(base["reports"].astype(np.int64), size)
        self.period, self.marks = NEVER, np.zeros(size, dtype=np.bool_)
        for entry, present in zip(entries, bits, strict=True):
            self.period = int(np.frombuffer(entry, dtype=PERIOD, count=1)[0])
            self.marks = _fit(present, size).astype(np.bool_)
            self.latest[self.marks] = self.period
            self.reports += self.marks
        self._tally = np.bincount(self.reports)

    @property
    def full(self) -> bool:
        """Whether the next write must be a new base."""
        return self.entries > PERIODS_PER_BASE

    def mark(self, devices: Devices, period: int) -> None:
        """Note a report of this period for each device that has none in it or in a later one."""
        if period != self.period:
            self.entries, self.period = self.entries + 1, period
            self.marks[:] = False
        places = devices.astype(np.intp)  # numpy would convert them at every use
        new = places[self.latest.take(places) < period]
        self.latest[new] = period
        self.marks[new] = True
        before = self.reports.take(new)
        self.reports[new] = before + 1
        moved = np.bincount(before)
        self._tally = _fit(self._tally, max(len(self._tally), len(moved) + 1))
        self._tally[: len(moved)] -= moved
        self._tally[1 : len(moved) + 1] += moved

    def start_new_base(self) -> None:
        """The base in the store now contains all entries."""
        self.entries, self.period = 0, NEVER

    def base(self) -> bytes:
        presences = np.empty(len(self.latest), dtype=PRESENCE)
        presences["last"], presences["reports"] = self.latest - NEVER, self.reports
        return presences.tobytes()

    def entry(self) -> bytes:
        """The period that was marked last, and which devices have reported in it."""
        return np.array(self.period, dtype=PERIOD).tobytes() + np.packbits(self.marks).tobytes()

    def tally(self) -> bytes:
        """Pairs: a number of reports, and how many devices have made so many."""
        made = np.flatnonzero(self._tally)
        return np.stack([made, self._tally[made]], axis=1).astype("<u8").tobytes()


def read_columns(link: Link, sealer: Sealer, devices: int = 0) -> FleetColumns:
    """The columns of a fleet, with room for at least so many devices; empty if the store has none."""
    return FleetColumns(link.ask("HGETALL", shard_key(SHARD, columns_table(sealer))), sealer, devices)


def columns_table(sealer: Sealer) -> str:
    return sealer.table("fleet presence")


def read_tally(link: Link, table: str) -> NDArray[np.int64]:
    """How many reports each device of a fleet has made, in no order. Needs no key."""
    pairs = np.frombuffer(link.ask("HGET", shard_key(SHARD, table), "tally") or b"", dtype="<u8").astype(np.int64)
    return np.repeat(pairs[::2], pairs[1::2])


def _fit(column: NDArray[Any], size: int) -> NDArray[Any]:
    return np.pad(column[:size], (0, max(0, size - len(column))))
