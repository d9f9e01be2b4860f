"""Who reported when: one interface, for single devices and for fleets.

`DevicePresence` keeps a record per device, under its pseudonym. `FleetPresence` keeps the devices of one fleet as
a sealed column, which costs Redis far less; a fleet has one writer at a time.
"""

import secrets
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Call
from memo_store.connection.layout import CHUNK, Placed, read_fields
from memo_store.registry import presence_table
from memo_store.survey_state import SurveyState
from memo_store.tables.presence import (
    SHARD,
    Presences,
    column_fields,
    columns_key,
    deliver,
    last_periods,
    parse,
    read_columns,
)
from protocols.arrays import Column, Devices, Mask
from protocols.errors import StoreError
from protocols.survey import Visits


@dataclass(frozen=True)
class DeviceStatus:
    """What the store knows of devices before they report a period."""

    gaps: Column  # or flags: what a report says about earlier ones
    eligible: Mask  # may report: not reported in this period or a later one, and the period is open
    reported: Mask  # known to have reported in this period


class Presence(Protocol):
    """Which devices may report a period, and which have."""

    def status(self, devices: Devices, period: int) -> DeviceStatus:
        """For each device: the gap its report of this period must carry, and whether it may make one."""
        ...

    def delivered(self, devices: Devices, period: int) -> None:
        """Record that the reports of this period were delivered. Idempotent; an earlier period changes nothing."""
        ...


class DevicePresence:
    """The presence of any devices of a keyring."""

    def __init__(self, state: SurveyState) -> None:
        self._state = state
        self._table = presence_table(state.sealer)

    def status(self, devices: Devices, period: int) -> DeviceStatus:
        closed, placed = self._state.advance(period), self._state.placed(devices)
        last = placed.restored(last_periods(self._state.guarded(period, self._records, placed)))
        return _status(last, period, closed, self._state.scheme.survey.visits)

    def delivered(self, devices: Devices, period: int) -> None:
        placed = self._state.placed(devices)
        for rows in placed.slices(CHUNK):
            self._state.guarded(period, self._deliver, placed.part(rows), period)

    def _records(self, placed: Placed) -> Presences:
        parts = [placed.part(rows) for rows in placed.slices(CHUNK)]
        answers = [answer for part in parts for answer in self._state.link.run(read_fields(self._table, part))]
        self._state.epochs.verify()
        return parse(answers)

    def _deliver(self, placed: Placed, period: int) -> None:
        self._state.epochs.run(deliver(self._table, placed, period))


class FleetPresence:
    """The presence of a fleet: devices numbered from 0 to `devices` - 1."""

    def __init__(self, state: SurveyState, devices: int) -> None:
        self._state = state
        self._version, self._latest, self._reports = read_columns(state.link, state.sealer, devices)
        self._stored_after = state.recoveries  # of the store, when it held these columns

    def status(self, devices: Devices, period: int) -> DeviceStatus:
        closed = self._state.advance(period)
        return _status(self._latest.take(devices), period, closed, self._state.scheme.survey.visits)

    def delivered(self, devices: Devices, period: int) -> None:
        rows = devices.astype(np.intp)
        new = rows[self._latest.take(rows) < period]
        self._latest[new] = period
        self._reports[new] += 1
        self._state.guarded(period, self._write)

    def _write(self) -> None:
        state, key = self._state, columns_key(self._state.sealer)
        if self._stored_after != state.recoveries:  # the stored version is older than ours, whichever process wrote it
            self._version = state.link.ask("HGET", key, "version") or b""
        following = secrets.token_bytes(16)
        fields = column_fields(state.sealer, self._latest, self._reports)
        ((found,),) = state.epochs.run([Call("write_columns", SHARD, key, (self._version, following, *fields))])
        if found not in (b"", following):
            raise StoreError(
                "another process reports for the same fleet and survey", "run one at a time, or give one another key"
            )
        self._version, self._stored_after = found, state.recoveries
        if not found:  # only this key was deleted; the columns are still in memory
            self._write()


def _status(last: NDArray[np.int64], period: int, closed: int, visits: Visits) -> DeviceStatus:
    """From each device's last period (or NEVER) and the last closed period."""
    return DeviceStatus(visits.of(last, period), (last < period) & (period > closed), last == period)
