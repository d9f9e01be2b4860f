"""Who reported when: one interface, for single devices and for fleets.

Single devices have a record each, under their pseudonyms: the last delivered period and the number of reports. A
fleet's devices are numbered from 0, so its presence is a column, which costs Redis far less:

    version   drawn anew with every write: there is one writer at a time, and a second one is detected and refused
    base      sealed, 8 bytes a device: the last period it reported in, plus 1, and how many reports it has made
    tally     how many devices have made how many reports

The base is sealed in one piece (`Sealer.seal`), under a new nonce at every write. So one copy of the store shows how
many devices the fleet has, and the tally. Two copies also show that there was a write in between, and how many reports
it added. Neither shows which devices reported, or whether they were the same ones.
"""

import secrets
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Call
from memo_store.connection.layout import CHUNK, PSEUDONYM, Placed, read_fields, shard_key, shard_slices
from memo_store.connection.link import Link
from memo_store.registry import fleet_table, presence_table
from memo_store.survey_state import SurveyState
from protocols.arrays import Column, Counts, Devices, Mask
from protocols.errors import StoreError
from protocols.survey import MAX_PERIOD, NEVER, Visits

PRESENCE = np.dtype([("last", "<u4"), ("reports", "<u4")])
Presences = NDArray[np.void]
"""Records, as PRESENCE."""
SHARD = 0
"""Of fleets."""
ABSENT = np.array((MAX_PERIOD, 0), dtype=PRESENCE).tobytes()


@dataclass(frozen=True)
class DeviceStatus:
    """What the store knows of devices before they report a period."""

    gaps: Column  # or flags: what a report says about earlier ones
    eligible: Mask  # may report: not reported in this period or a later one, and the period is open
    reported: Mask  # known to have reported in this period

    @classmethod
    def of(cls, last: NDArray[np.int64], period: int, closed: int, visits: Visits) -> "DeviceStatus":
        """From each device's last period (or NEVER) and the last closed period."""
        return cls(visits.of(last, period), (last < period) & (period > closed), last == period)


class DevicePresence:
    """The presence of any devices of a keyring."""

    def __init__(self, state: SurveyState) -> None:
        self._state = state
        self._table = presence_table(state.sealer)

    def status(self, devices: Devices, period: int) -> DeviceStatus:
        """For each device: the gap its report of this period must carry, and whether it may make one."""
        closed, placed = self._state.advance(period), self._state.placed(devices)
        last = placed.restored(last_periods(self._state.guarded(period, self._records, placed)))
        return DeviceStatus.of(last, period, closed, self._state.scheme.visits)

    def delivered(self, devices: Devices, period: int) -> None:
        """Record that the reports of this period were delivered. Idempotent; an earlier period changes nothing."""
        placed = self._state.placed(devices)
        for rows in placed.slices(CHUNK):
            self._state.guarded(period, self._deliver, placed.part(rows), period)

    def _records(self, placed: Placed) -> Presences:
        parts = [placed.part(rows) for rows in placed.slices(CHUNK)]
        answers = [answer for part in parts for answer in self._state.link.run(read_fields(self._table, part))]
        self._state.epochs.verify()
        return np.frombuffer(b"".join(record or ABSENT for record in chain.from_iterable(answers)), dtype=PRESENCE)

    def _deliver(self, placed: Placed, period: int) -> None:
        fields = [(shard, placed.pseudonyms[rows].tobytes()) for shard, rows in shard_slices(placed.names)]
        self._state.epochs.run(
            [Call("deliver", shard, shard_key(shard, self._table), (own, PSEUDONYM, period)) for shard, own in fields]
        )


class FleetPresence:
    """The presence of a fleet: devices numbered from 0 to `devices` - 1. A fleet has one writer at a time."""

    def __init__(self, state: SurveyState, devices: int) -> None:
        self._state = state
        self._key = shard_key(SHARD, fleet_table(state.sealer))
        version, sealed = state.link.ask("HMGET", self._key, "version", "base")
        base = np.frombuffer(b"" if sealed is None else state.sealer.unseal("base", sealed), dtype=PRESENCE)
        self._version = version or b""
        self._latest, self._reports = (
            np.pad(base[name].astype(np.int64), (0, max(0, devices - len(base)))) for name in ("last", "reports")
        )
        self._latest += NEVER
        self._stored_after = state.recoveries  # of the store, when it held these columns

    def status(self, devices: Devices, period: int) -> DeviceStatus:
        """As of single devices."""
        closed = self._state.advance(period)
        return DeviceStatus.of(self._latest.take(devices), period, closed, self._state.scheme.visits)

    def delivered(self, devices: Devices, period: int) -> None:
        """As of single devices."""
        rows = devices.astype(np.intp)
        new = rows[self._latest.take(rows) < period]
        self._latest[new] = period
        self._reports[new] += 1
        self._state.guarded(period, self._write)

    def _write(self) -> None:
        state = self._state
        if self._stored_after != state.recoveries:  # the stored version is older than ours, whichever process wrote it
            self._version = state.link.ask("HGET", self._key, "version") or b""
        base = np.empty(len(self._latest), dtype=PRESENCE)
        base["last"], base["reports"] = self._latest - NEVER, self._reports
        tally = np.stack(np.unique(self._reports, return_counts=True), axis=1).astype("<u8")
        fields = "base", state.sealer.seal("base", base.tobytes()), "tally", tally.tobytes()
        following = secrets.token_bytes(16)
        ((found,),) = state.epochs.run([Call("write_columns", SHARD, self._key, (self._version, following, *fields))])
        if found not in (b"", following):
            raise StoreError(
                "another process reports for the same fleet and survey", "run one at a time, or give one another key"
            )
        self._version, self._stored_after = found, state.recoveries
        if not found:  # only this key was deleted; the columns are still in memory
            self._write()


Presence = DevicePresence | FleetPresence


def last_periods(presences: Presences) -> NDArray[np.int64]:
    """The last period in which each device has reported, or NEVER."""
    last = presences["last"].astype(np.int64)
    last[last == MAX_PERIOD] = NEVER
    return last


def read_tally(link: Link, table: str) -> Counts:
    """How many reports each device of a fleet has made, in no order. Needs no key."""
    pairs = np.frombuffer(link.ask("HGET", shard_key(SHARD, table), "tally") or b"", dtype="<u8").astype(np.int64)
    return np.repeat(pairs[::2], pairs[1::2])
