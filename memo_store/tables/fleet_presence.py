"""Who reported when, for a fleet: its devices are numbered from 0, so presence is a few columns, not a table of names.

    version      drawn anew with every write: a roll has one writer at a time, and a second one is noticed and refused
    base         sealed, 8 bytes a device: the last period it reported in, plus 1, and how many reports it has made
    0, 1, ...    sealed, a bit a device: who has reported in one period since
    tally        how many devices have made how many reports

A batch of thousands costs Redis one write of N / 8 bytes; every 32 periods one of 8 N sums them up.

What is sealed is sealed whole (`Veil.seal`), under a nonce of its own at every write. So one copy of the store says how
many devices the fleet has, how many periods have passed since the base, and the tally; two copies say besides that the
roll was written in between, and how many reports were added. Neither says which device reported, or whether the same
ones did.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Call, History, Lost
from memo_store.connection.layout import shard_key
from memo_store.connection.link import Link
from memo_store.sealing import Veil
from memo_store.tables.presence import NEVER, PRESENCE, Standing, standing
from protocols.errors import StoreError
from protocols.randomness import Devices

SHARD = 0
PERIODS_PER_BASE = 32
"""So many bits a device are half of its base: the roll is rarely written as a whole, and never grows by more."""
PERIOD = np.dtype("<u4")
Whole = NDArray[np.int64]
Reach = Callable[[int], int]
"""Comes to a period, and says which is the last that is over."""
Guarded = Callable[[int, Callable[[], None]], None]
"""Does some work in a period, again if the store had lost its past."""


class Columns:
    """A roll, opened: of each device the last period (or NEVER) and how many reports it has made."""

    def __init__(self, fields: Mapping[bytes, bytes], veil: Veil, devices: int = 0) -> None:
        """What these fields of the store hold, with room for so many devices; nothing if there are none."""
        self.version = fields.get(b"version", b"")
        self.entries = sum(field.isdigit() for field in fields)
        base = np.frombuffer(veil.unseal("base", fields[b"base"]) if b"base" in fields else b"", dtype=PRESENCE)
        entries = [veil.unseal(str(number), fields.get(b"%d" % number, b"")) for number in range(self.entries)]
        bits = [np.unpackbits(np.frombuffer(entry[PERIOD.itemsize :], dtype=np.uint8)) for entry in entries]
        size = max(devices, *map(len, (base, *bits)))
        self.latest = _fit(base["last"].astype(np.int64), size) + NEVER
        self.reports = _fit(base["reports"].astype(np.int64), size)
        self.period, self.marks = NEVER, np.zeros(size, dtype=np.bool_)
        for entry, there in zip(entries, bits, strict=True):
            self.period = int(np.frombuffer(entry, dtype=PERIOD, count=1)[0])
            self.marks = _fit(there, size).astype(np.bool_)
            self.latest[self.marks] = self.period
            self.reports += self.marks
        self._tally = np.bincount(self.reports)

    def mark(self, devices: Devices, period: int) -> None:
        """These have reported in this period, unless they had in it or in a later one."""
        if period != self.period:
            self.entries, self.period = self.entries + 1, period
            self.marks[:] = False
        places = devices.astype(np.intp)  # numpy would convert them at every use
        fresh = places[self.latest.take(places) < period]
        self.latest[fresh] = period
        self.marks[fresh] = True
        before = self.reports.take(fresh)
        self.reports[fresh] = before + 1
        moved = np.bincount(before)
        self._tally = _fit(self._tally, max(len(self._tally), len(moved) + 1))
        self._tally[: len(moved)] -= moved
        self._tally[1 : len(moved) + 1] += moved

    def sum_up(self) -> None:
        """Let the base say it all."""
        self.entries, self.period = 0, NEVER

    def base(self) -> bytes:
        presences = np.empty(len(self.latest), dtype=PRESENCE)
        presences["last"], presences["reports"] = self.latest - NEVER, self.reports
        return presences.tobytes()

    def entry(self) -> bytes:
        """Who has reported in the period that was marked last."""
        return np.array(self.period, dtype=PERIOD).tobytes() + np.packbits(self.marks).tobytes()

    def tally(self) -> bytes:
        """Pairs: a number of reports, and how many devices have made so many."""
        made = np.flatnonzero(self._tally)
        return np.stack([made, self._tally[made]], axis=1).astype("<u8").tobytes()


class Roll:
    """The roll of one survey's fleet."""

    def __init__(
        self, link: Link, history: History, veil: Veil, devices: int, horizon: int, reach: Reach, guarded: Guarded
    ) -> None:
        self._link = link
        self._history = history
        self._veil = veil
        self._columns = read_roll(link, veil, devices)
        self._in_doubt = False  # whether the store may hold less than we have written
        self._horizon = horizon
        self._reach = reach
        self._guarded = guarded

    def standing(self, devices: Devices, period: int) -> Standing:
        """For each device: the gap its report of this period must carry, and whether it may make one."""
        return standing(self._columns.latest.take(devices), period, self._reach(period), self._horizon)

    def delivered(self, devices: Devices, period: int) -> None:
        """Record that the reports of this period have arrived; saying it twice, or late, changes nothing."""
        self._columns.mark(devices, period)
        self._guarded(period, self._write)

    def _write(self) -> None:
        columns, key = self._columns, shard_key(SHARD, roll_table(self._veil))
        if self._in_doubt:  # what is there now is older than what we know, whoever wrote it
            columns.version = self._link.ask("HGET", key, "version") or b""
        whole = self._in_doubt or columns.entries > PERIODS_PER_BASE
        name = "base" if whole else str(columns.entries - 1)
        sealed = self._veil.seal(name, columns.base() if whole else columns.entry())
        following = secrets.token_bytes(16)
        fields = (name, sealed, "tally", columns.tally())
        call = Call("enroll", SHARD, key, (columns.version, following, int(whole), *fields))
        try:
            ((found,),) = self._history.run([call])
        except Lost:
            self._in_doubt = True
            raise
        if found == b"":  # somebody has dropped the roll alone; we still know it all
            self._in_doubt = True
            self._write()
            return
        if found != following:
            raise StoreError(
                "another process reports for the same fleet and survey", "run one at a time, or give one another key"
            )
        columns.version, self._in_doubt = following, False
        if whole:
            columns.sum_up()


def read_roll(link: Link, veil: Veil, devices: int = 0) -> Columns:
    """The roll of a fleet, with room for so many devices."""
    return Columns(link.ask("HGETALL", shard_key(SHARD, roll_table(veil))), veil, devices)


def roll_table(veil: Veil) -> str:
    return veil.table("roll")


def read_tally(link: Link, table: str) -> Whole:
    """How many reports each device of a fleet has made, in no order. Needs no key."""
    pairs = np.frombuffer(link.ask("HGET", shard_key(SHARD, table), "tally") or b"", dtype="<u8").astype(np.int64)
    return np.repeat(pairs[::2], pairs[1::2])


def _fit(column: NDArray[Any], size: int) -> NDArray[Any]:
    return np.pad(column[:size], (0, max(0, size - len(column))))
