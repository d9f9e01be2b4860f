"""Presence in Redis: of single devices a record each, the last delivered period and the number of reports.

A fleet's devices are numbered from 0, so its presence is a column, not a record per device:

    version   drawn anew with every write: there is one writer at a time, and a second one is detected and refused
    base      sealed, 8 bytes a device: the last period it reported in, plus 1, and how many reports it has made
    tally     how many devices have made how many reports

The base is sealed in one piece (`Sealer.seal`), under a new nonce at every write. So one copy of the store shows how
many devices the fleet has, and the tally. Two copies also show that there was a write in between, and how many reports
it added. Neither shows which devices reported, or whether they were the same ones.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import Call
from memo_store.connection.layout import PSEUDONYM, Placed, shard_key
from memo_store.connection.link import Link
from memo_store.sealing import Sealer
from protocols.arrays import Counts
from protocols.survey import MAX_PERIOD, NEVER

PRESENCE = np.dtype([("last", "<u4"), ("reports", "<u4")])
Presences = NDArray[np.void]
"""Records, as PRESENCE."""
SHARD = 0
"""Of fleets."""
ABSENT = np.array((MAX_PERIOD, 0), dtype=PRESENCE).tobytes()


def parse(answers: Sequence[Sequence[bytes | None]]) -> Presences:
    """The presence records of devices, in the order in which they were asked for."""
    records = [record or ABSENT for record in chain.from_iterable(answers)]
    return np.frombuffer(b"".join(records), dtype=PRESENCE)


def deliver(table: str, placed: Placed, period: int) -> list[Call]:
    """Scripts that record a delivered report of these devices."""
    return [
        Call("deliver", shard, shard_key(shard, table), (placed.pseudonyms[rows].tobytes(), PSEUDONYM, period))
        for shard, rows in placed.shards()
    ]


def last_periods(presences: Presences) -> NDArray[np.int64]:
    """The last period in which each device has reported, or NEVER."""
    last = presences["last"].astype(np.int64)
    last[last == MAX_PERIOD] = NEVER
    return last


def columns_table(sealer: Sealer) -> str:
    return sealer.table("fleet presence")


def columns_key(sealer: Sealer) -> str:
    return shard_key(SHARD, columns_table(sealer))


def read_columns(link: Link, sealer: Sealer, devices: int = 0) -> tuple[bytes, Counts, Counts]:
    """The version, and the last period (or NEVER) and the number of reports of at least this number of devices."""
    version, sealed = link.ask("HMGET", columns_key(sealer), "version", "base")
    base = np.frombuffer(b"" if sealed is None else sealer.unseal("base", sealed), dtype=PRESENCE)
    latest, reports = (
        np.pad(base[name].astype(np.int64), (0, max(0, devices - len(base)))) for name in ("last", "reports")
    )
    return version or b"", latest + NEVER, reports


def column_fields(sealer: Sealer, latest: Counts, reports: Counts) -> tuple[str | bytes, ...]:
    """The fields `base` and `tally`, as they are stored."""
    base = np.empty(len(latest), dtype=PRESENCE)
    base["last"], base["reports"] = latest - NEVER, reports
    pairs = np.stack(np.unique(reports, return_counts=True), axis=1).astype("<u8")
    return "base", sealer.seal("base", base.tobytes()), "tally", pairs.tobytes()


def read_tally(link: Link, table: str) -> Counts:
    """How many reports each device of a fleet has made, in no order. Needs no key."""
    pairs = np.frombuffer(link.ask("HGET", shard_key(SHARD, table), "tally") or b"", dtype="<u8").astype(np.int64)
    return np.repeat(pairs[::2], pairs[1::2])
