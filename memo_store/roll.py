"""Who reported when, for a fleet: its devices are numbered from 0, so presence is a column, not a table of names.

    last, reports    4 bytes a device: the last period it reported in, plus 1, and how many, when `period` began
    period, marks    one bit a device: who has reported in `period`

A batch of thousands costs Redis one write of N / 8 bytes, a new period one of 8 N. A roll has one writer at a time: a
second one is noticed and refused. The numbers mean something to the fleet alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memo_store.history import Call, History
from memo_store.layout import shard_key
from memo_store.link import Link
from memo_store.presence import NEVER, Standing, standing
from protocols.errors import StoreError
from protocols.keystream import Devices

SHARD = 0
Whole = NDArray[np.int64]
Reach = Callable[[int], int]
"""Comes to a period, and says which is the last that is over."""
Guarded = Callable[[int, Callable[[], None]], None]
"""Does some work in a period, again if the store had lost its past."""


@dataclass
class Columns:
    """A roll as it is read."""

    version: bytes
    latest: Whole  # each device's last period, or NEVER
    reports: Whole  # how many reports each had made before `period`
    period: int
    marks: NDArray[np.bool_]  # who has reported in `period`

    @classmethod
    def read(cls, link: Link, table: str, devices: int = 0) -> Columns:
        """What the store holds, with room for so many devices; nothing if it holds nothing."""
        version, last, reports, period, marks = link.ask(
            "HMGET", shard_key(SHARD, table), "version", "last", "reports", "period", "marks"
        )
        size, period = max(devices, len(last or b"") // 4), int(period or 0)
        marked = _fit(np.unpackbits(np.frombuffer(marks or b"", dtype=np.uint8)).astype(np.bool_), size)
        latest = np.where(marked, period, _column(last, size) + NEVER)
        return cls(version or b"", latest, _column(reports, size), period, marked)

    def counted(self) -> Whole:
        """How many reports each device has made."""
        return self.reports + self.marks


class Roll:
    """The roll of one survey's fleet."""

    def __init__(
        self, link: Link, history: History, table: str, devices: int, horizon: int, reach: Reach, guarded: Guarded
    ) -> None:
        self._columns = Columns.read(link, table, devices)
        self._turned = not self._columns.version  # whether last and reports must be written too
        self._history = history
        self._table = table
        self._horizon = horizon
        self._reach = reach
        self._guarded = guarded

    def standing(self, devices: Devices, period: int) -> Standing:
        """For each device: the gap its report of this period must carry, and whether it may make one."""
        return standing(self._columns.latest.take(devices), period, self._reach(period), self._horizon)

    def delivered(self, devices: Devices, period: int) -> None:
        """Record that the reports of this period have arrived; saying it twice, or late, changes nothing."""
        columns = self._columns
        if period != columns.period:
            columns.reports, columns.marks = columns.counted(), np.zeros_like(columns.marks)
            columns.period, self._turned = period, True
        fresh = devices[columns.latest.take(devices) < period]
        columns.latest[fresh] = period
        columns.marks[fresh] = True
        self._guarded(period, self._write)

    def _write(self) -> None:
        columns, following = self._columns, secrets.token_bytes(8)
        fields: list[bytes | str | int] = ["period", columns.period, "marks", np.packbits(columns.marks).tobytes()]
        if self._turned:
            fields += ["last", _bytes(columns.latest - NEVER), "reports", _bytes(columns.reports)]
        call = Call("enroll", SHARD, shard_key(SHARD, self._table), (columns.version, following, *fields))
        ((found,),) = self._history.run([call])
        if found == b"" and columns.version:  # the store was emptied; we still know it all
            columns.version, self._turned = b"", True
            self._write()
        elif found != following:
            raise StoreError(
                "another process reports for the same fleet and survey", "run one at a time, or give one another key"
            )
        else:
            columns.version, self._turned = following, False


def _column(raw: bytes | None, size: int) -> Whole:
    return _fit(np.frombuffer(raw or b"", dtype="<u4").astype(np.int64), size)


def _fit(column: NDArray[Any], size: int) -> NDArray[Any]:
    return np.pad(column[:size], (0, max(0, size - len(column))))


def _bytes(column: Whole) -> bytes:
    return column.astype("<u4").tobytes()
