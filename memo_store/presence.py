"""Who reported when: one interface, for single devices and for fleets.

`DevicePresence` keeps a record per device, under its pseudonym. `FleetPresence` keeps the devices of one fleet as
sealed columns, which costs Redis far less; a fleet has one writer at a time.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Call, EpochLost
from memo_store.connection.layout import CHUNK, Placed, Rows, shard_key
from memo_store.registry import presence_table
from memo_store.survey_state import SurveyState
from memo_store.tables.fleet_columns import SHARD, columns_table, read_columns
from memo_store.tables.presence import NEVER, Presences, after_delivery, last_periods
from protocols.errors import StoreError
from protocols.randomness import Devices


@dataclass(frozen=True)
class Records:
    """The presence records of devices, and how often others had disturbed the store before they were read."""

    presences: Presences
    disturbances: int

    def part(self, rows: Rows) -> Records:
        """Those of some of the devices."""
        return Records(self.presences[rows], self.disturbances)


@dataclass(frozen=True)
class DeviceStatus:
    """What the store knows of devices before they report a period."""

    gaps: NDArray[np.uint16]  # periods since the last report: 1 .. horizon, which also stands for never
    eligible: NDArray[np.bool_]  # may report: not reported in this period or a later one, and the period is open
    reported: NDArray[np.bool_]  # known to have reported in this period
    records: Records | None = None  # what it is from, if the store keeps a record of each device


class Presence(Protocol):
    """Which devices may report a period, and which have."""

    def status(self, devices: Devices, period: int) -> DeviceStatus:
        """For each device: the gap its report of this period must carry, and whether it may make one."""
        ...

    def delivered(self, devices: Devices, period: int, records: Records | None = None) -> None:
        """Record that the reports of this period were delivered. Idempotent; an earlier period changes nothing.

        `records`: those of the devices' status. While nobody else writes, the store does not read them again.
        """
        ...


class DevicePresence:
    """The presence of any devices of a keyring."""

    def __init__(self, state: SurveyState) -> None:
        self._state = state
        self._table = presence_table(state.sealer)

    def status(self, devices: Devices, period: int) -> DeviceStatus:
        closed = self._state.advance(period)
        records = self._state.guarded(period, self._records, self._state.placed(devices))
        status = _status(last_periods(records.presences), period, closed, self._state.scheme.survey.horizon)
        return replace(status, records=records)

    def delivered(self, devices: Devices, period: int, records: Records | None = None) -> None:
        placed, following = self._state.placed(devices), None
        if records is not None and records.disturbances == self._state.epochs.disturbances:
            following = after_delivery(records.presences, period).take(placed.order)
        for rows in placed.slices(CHUNK):
            calls = self._table.deliver(placed.part(rows), period, None if following is None else following[rows])
            self._state.guarded(period, self._state.epochs.run, calls)

    def _records(self, placed: Placed) -> Records:
        parts, disturbances = [placed.part(rows) for rows in placed.slices(CHUNK)], self._state.epochs.disturbances
        answers = [answer for part in parts for answer in self._state.link.run(self._table.read(part))]
        self._state.epochs.verify()
        return Records(placed.restored(self._table.parse(answers)), disturbances)


class FleetPresence:
    """The presence of a fleet: devices numbered from 0 to `devices` - 1."""

    def __init__(self, state: SurveyState, devices: int) -> None:
        self._state = state
        self._key = shard_key(SHARD, columns_table(state.sealer))
        self._columns = read_columns(state.link, state.sealer, devices)
        self._in_doubt = False  # whether the store may hold less than this process has written

    def status(self, devices: Devices, period: int) -> DeviceStatus:
        closed = self._state.advance(period)
        return _status(self._columns.latest.take(devices), period, closed, self._state.scheme.survey.horizon)

    def delivered(self, devices: Devices, period: int, records: Records | None = None) -> None:
        self._columns.mark(devices, period)
        self._state.guarded(period, self._write)

    def _write(self) -> None:
        columns = self._columns
        if self._in_doubt:  # the stored version is older than ours, no matter which process wrote it
            columns.version = self._state.link.ask("HGET", self._key, "version") or b""
        rewrite = self._in_doubt or columns.full
        name = "base" if rewrite else str(columns.entries - 1)
        sealed = self._state.sealer.seal(name, columns.base() if rewrite else columns.entry())
        following = secrets.token_bytes(16)
        fields = (name, sealed, "tally", columns.tally())
        call = Call("write_columns", SHARD, self._key, (columns.version, following, int(rewrite), *fields))
        try:
            ((found,),) = self._state.epochs.run([call])
        except EpochLost:
            self._in_doubt = True
            raise
        if found == b"":  # only this key was deleted; the columns are still in memory
            self._in_doubt = True
            self._write()
            return
        if found != following:
            raise StoreError(
                "another process reports for the same fleet and survey", "run one at a time, or give one another key"
            )
        columns.version, self._in_doubt = following, False
        if rewrite:
            columns.start_new_base()


def _status(last: NDArray[np.int64], period: int, closed: int, horizon: int) -> DeviceStatus:
    """From each device's last period (or NEVER) and the last closed period."""
    gaps = np.where(last == NEVER, horizon, np.clip(period - last, 1, horizon))
    return DeviceStatus(gaps.astype(np.uint16), (last < period) & (period > closed), last == period)
