"""Epochs: how a process notices that the store has lost data.

Memos can be derived again; how many values a device has memoised cannot. So every shard keeps an epoch record: an epoch
(drawn at random when the shard is first used), the number of writes since, and whether an operator has confirmed that
its history is complete. A process that has read the record notices when the shard was emptied (another epoch, or none)
and when it went back in time (fewer writes than the process has seen: a restored copy, or a failover that lost the last
writes). Every script checks this before it writes, on the shard it writes to. What a process has seen can be stored and
given to the next one, which then notices what was lost in between.

Beside the shards, a store has an id, drawn once. It stays when a new history is started. If the store is emptied, a
process that knows the id writes it again. A store also keeps a note that it has lost data, from when a process notices
it or an operator says so: since then no cap bounds what its devices have memoised.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from memo_store.connection.layout import SHARDS, shard_key
from memo_store.connection.link import Command, Link

STORE_ID = "hearsay:store"
LOSS_NOTE = "hearsay:loss"
Seen = tuple[tuple[str, int], ...]
"""Each shard's epoch and number of writes, as a process has seen them; empty: nothing seen."""
LOST = -1
"""What a script returns instead of `writes` if its shard has lost data."""


@cache
def script(name: str) -> str:
    return (files(__package__) / "scripts" / f"{name}.lua").read_text()


class EpochLost(Exception):
    """A shard has lost data. Internal: `SurveyState` decides what follows for its survey."""


@dataclass(frozen=True)
class Call:
    """A guarded script on one shard: `key` is what it works on."""

    script: str
    shard: int
    key: str
    arguments: tuple[Any, ...] = field(repr=False)


class Epochs:
    """The epoch records of all shards, as this process knows them."""

    def __init__(self, link: Link, seen: Seen = ()) -> None:
        self.link = link
        self._epochs = [epoch.encode() for epoch, _ in seen]
        self._writes = [writes for _, writes in seen]
        self.store_id = secrets.token_hex(8)  # unless the store has one
        self.confirmed = False
        self.lost = self.read()

    @property
    def seen(self) -> Seen:
        return tuple((epoch.decode(), writes) for epoch, writes in zip(self._epochs, self._writes, strict=True))

    def read(self) -> bool:
        """Read the store's id and every shard's epoch record. Returns whether a shard has lost data since it was seen.

        A store without an id gets the one known here. A shard without a record gets one, with an unconfirmed history.
        """
        keys = epoch_keys()
        commands: list[Command] = [("SET", STORE_ID, self.store_id, "NX"), ("GET", STORE_ID)]
        commands += [("HSETNX", key, "writes", 0) for key in keys]
        commands += [("HSETNX", key, "epoch", secrets.token_hex(8)) for key in keys]
        commands += [("HMGET", key, "epoch", "writes", "confirmed") for key in keys]
        answers = self.link.run(commands, atomic=True)
        self.store_id, records = answers[1].decode(), answers[-SHARDS:]
        emptied = bool(self._epochs) and [epoch for epoch, _, _ in records] != self._epochs
        reverted = [
            shard
            for shard, (epoch, writes, _) in enumerate(records)
            if self._epochs and epoch == self._epochs[shard] and int(writes) < self._writes[shard]
        ]
        self.link.run([("HDEL", keys[shard], "confirmed") for shard in reverted])
        self._epochs = [epoch for epoch, _, _ in records]
        self._writes = [int(writes) for _, writes, _ in records]
        self.confirmed = not reverted and all(confirmed == b"1" for _, _, confirmed in records)
        lost = emptied or bool(reverted)
        if lost:
            self._note_loss()
        return lost

    def confirm_history(self) -> None:
        """Confirm that every shard's history is complete: nothing was lost, and it goes on."""
        self.link.run([("HSET", key, "confirmed", 1) for key in epoch_keys()], atomic=True)
        self.confirmed = True

    def start_history(self) -> None:
        """Give every shard a new epoch, with a confirmed history, and note that data was lost."""
        self._note_loss()
        fields = ("writes", 0, "confirmed", 1)
        self.link.run([("HSET", key, "epoch", secrets.token_hex(8), *fields) for key in epoch_keys()], atomic=True)
        self._epochs = []  # what was seen before belongs to the history that ended
        self.read()

    def _note_loss(self) -> None:
        self.link.ask("SET", LOSS_NOTE, 1)

    def run(self, calls: Sequence[Call]) -> list[Any]:
        """Run guarded scripts in one batch, at most one on a shard. Returns what each returned. Raises `EpochLost`."""
        answers = self.link.run([self._command(call) for call in calls], atomic=True)
        for call, (writes, *_) in zip(calls, answers, strict=True):
            if writes == LOST:
                raise EpochLost
            self._writes[call.shard] = max(self._writes[call.shard], writes)
        return [returned for _, returned in answers]

    def _command(self, call: Call) -> Command:
        keys = shard_key(call.shard, "epoch"), call.key
        known = self._epochs[call.shard], self._writes[call.shard]
        return "EVAL", script("guard") + script(call.script), len(keys), *keys, *known, *call.arguments

    def verify(self) -> None:
        """Raise `EpochLost` if a shard has lost data. Call it after reads, which have no guard of their own."""
        records = self.link.run([("HMGET", key, "epoch", "writes") for key in epoch_keys()])
        for shard, (epoch, writes) in enumerate(records):
            if epoch != self._epochs[shard] or int(writes) < self._writes[shard]:
                raise EpochLost
            self._writes[shard] = int(writes)


def epoch_keys() -> list[str]:
    return [shard_key(shard, "epoch") for shard in range(SHARDS)]
