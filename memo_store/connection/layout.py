"""Where things are in Redis.

    hearsay:{SHARD}:epoch            the shard's epoch record (epochs.py)
    hearsay:{SHARD}:TABLE            a hash: pseudonym of a device -> its record
    hearsay:{0}:TABLE                a fleet's presence, sealed (presence.py)
    hearsay:{SHARD}:TABLE@PERIOD     what each device has committed in an open period (period_commits.py)
    hearsay:{TABLE}:state            of a survey: its newest period, and the last closed one (survey_state.py); where
                                     the keys of its periods are (period_keys.py)
    hearsay:{TABLE}:open, :lost      its open periods, and those in which presence was lost
    hearsay:store                    the store's id (epochs.py)
    hearsay:surveys, hearsay:tables  all surveys and tables: public terms, no devices (registry.py)

SHARD is a hash tag, so a Redis Cluster spreads shards over its nodes and still runs a script on one of them. TABLE
and pseudonyms are derived from the keyring (sealing.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.link import Command
from protocols.arrays import Bytes, Mask, Places, Words

SHARDS = 16
CHUNK = 10_000
"""The most devices in one batch."""
PSEUDONYM = 12
"""Bytes of a pseudonym: among 10^9 devices, the chance that two have the same one is 10^-11."""

T = TypeVar("T", bound=np.generic)


def shard_key(shard: int, name: str) -> str:
    return f"hearsay:{{{shard}}}:{name}"


def shard_slices(names: Words) -> Iterator[tuple[int, slice]]:
    """Each shard that has some of these ascending names, and its rows. The shard is the name's first bits."""
    shards = names >> np.uint64(64 - (SHARDS - 1).bit_length())
    bounds = np.searchsorted(shards, np.arange(SHARDS + 1, dtype=np.uint64)).tolist()
    for shard in range(SHARDS):
        if bounds[shard] < bounds[shard + 1]:
            yield shard, slice(bounds[shard], bounds[shard + 1])


def firsts(names: Words) -> Mask:
    """Of ascending names, which ones are not the same as the one before."""
    new = np.ones(len(names), dtype=np.bool_)
    new[1:] = names[1:] != names[:-1]
    return new


@dataclass(frozen=True)
class Placed:
    """Devices in the order of their pseudonyms, so that the order of requests shows Redis nothing."""

    pseudonyms: Bytes = field(repr=False)  # [n, PSEUDONYM], ascending
    names: Words  # their first 8 bytes, as numbers
    order: Places  # each one's row in the columns of the caller

    @classmethod
    def of(cls, pseudonyms: Bytes) -> "Placed":
        names = pseudonyms[:, :8].view(">u8")[:, 0].astype(np.uint64)
        order = np.argsort(names)
        return cls(pseudonyms.take(order, axis=0), names.take(order), order)

    def slices(self, size: int) -> Iterator[slice]:
        """Parts of at most `size`. At least one, so that no devices give empty columns of the right type."""
        for start in range(0, max(len(self.order), 1), size):
            yield slice(start, start + size)

    def part(self, rows: Places | slice) -> "Placed":
        """Some of the devices."""
        return Placed(self.pseudonyms[rows], self.names[rows], self.order[rows])

    def of_first(self, column: NDArray[T]) -> NDArray[T]:
        """For each row what the first row of the same device has in this column. Devices may occur twice."""
        return column if self._first is None else column.take(self._first, axis=0)

    @cached_property
    def _first(self) -> Places | None:
        """For each row the first row of the same device; None if no device occurs twice."""
        new = firsts(self.names)
        return None if new.all() else np.flatnonzero(new)[np.cumsum(new) - 1]

    def restored(self, column: NDArray[T]) -> NDArray[T]:
        """A column in the caller's order of devices."""
        return column.take(self._rows, axis=0)

    @cached_property
    def _rows(self) -> Places:
        """Where each of the caller's rows is."""
        rows = np.empty_like(self.order)
        rows[self.order] = np.arange(len(rows))
        return rows


def read_fields(table: str, placed: Placed) -> list[Command]:
    """Commands that read these devices' records of a table."""
    fields = placed.pseudonyms.view(f"V{PSEUDONYM}").ravel().tolist()
    return [("HMGET", shard_key(shard, table), *fields[rows]) for shard, rows in shard_slices(placed.names)]
