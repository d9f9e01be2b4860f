"""Whether the store still is the one that remembers.

Memos can be derived again; what a device was permitted cannot. So every shard keeps a record of its own past: an epoch
(made at random when the shard is first used), the number of writes since, and whether its history is whole, which is
for the operator to say. A process that has once read the record notices when the shard was emptied (another epoch, or
none) and when it went back in time (fewer writes than it has seen: a restored copy, a failover that lost the end).
Every script checks this before it writes, on the shard it writes to.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from memo_store.connection.layout import SHARDS, shard_key
from memo_store.connection.link import Command, Link

LOST = -1


@cache
def script(name: str) -> str:
    return (files(__package__) / "scripts" / f"{name}.lua").read_text()


class Lost(Exception):
    """A shard is not the one we knew. Internal: the survey decides what that means for it."""


def vouched_for(link: Link) -> bool:
    """Whether every shard's history is whole, as far as the operator has said."""
    return all(link.run([("HGET", shard_key(shard, "epoch"), "whole") for shard in range(SHARDS)]))


@dataclass(frozen=True)
class Call:
    """A guarded script on one shard: `key` is what it works on."""

    script: str
    shard: int
    key: str
    arguments: tuple[Any, ...] = field(repr=False)


class History:
    """What this process knows of each shard's past."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._epochs: list[bytes] = []
        self._writes: list[int] = []
        self.whole = False
        self.meet()

    def meet(self) -> None:
        """Read every shard's past as it is now; a shard without one begins to have one, with nothing vouched for."""
        keys = [shard_key(shard, "epoch") for shard in range(SHARDS)]
        begun: list[Command] = [("HSETNX", key, "writes", 0) for key in keys]
        begun += [("HSETNX", key, "epoch", secrets.token_hex(8)) for key in keys]
        begun += [("HMGET", key, "epoch", "writes", "whole") for key in keys]
        pasts = self._link.run(begun, atomic=True)[-SHARDS:]
        reverted = [
            shard
            for shard, (epoch, writes, _) in enumerate(pasts)
            if self._epochs and epoch == self._epochs[shard] and int(writes) < self._writes[shard]
        ]
        self._link.run([("HDEL", keys[shard], "whole") for shard in reverted])
        self._epochs = [epoch for epoch, _, _ in pasts]
        self._writes = [int(writes) for _, writes, _ in pasts]
        self.whole = not reverted and all(whole == b"1" for _, _, whole in pasts)

    def begin(self) -> None:
        """A new history for every shard, vouched for by whoever calls this."""
        keys = [shard_key(shard, "epoch") for shard in range(SHARDS)]
        self._link.run(
            [("HSET", key, "epoch", secrets.token_hex(8), "writes", 0, "whole", 1) for key in keys], atomic=True
        )
        self.meet()

    def run(self, calls: Sequence[Call]) -> list[list[Any]]:
        """Guarded scripts in one batch: what each returned. Raises `Lost`."""
        commands: list[Command] = [
            (
                "EVAL", script("guard") + script(call.script), 2, shard_key(call.shard, "epoch"), call.key,
                self._epochs[call.shard], self._writes[call.shard], *call.arguments,
            )
            for call in calls
        ]  # fmt: skip
        answers = self._link.run(commands, atomic=True)
        for call, (writes, *_) in zip(calls, answers, strict=True):
            if writes == LOST:
                raise Lost
            self._writes[call.shard] = max(self._writes[call.shard], writes)
        return [answer[1:] for answer in answers]

    def verify(self) -> None:
        """Raise `Lost` if a shard is not the one we know: what was read from it before this call does not count."""
        keys = [shard_key(shard, "epoch") for shard in range(SHARDS)]
        for shard, (epoch, writes) in enumerate(self._link.run([("HMGET", key, "epoch", "writes") for key in keys])):
            if epoch != self._epochs[shard] or int(writes) < self._writes[shard]:
                raise Lost
            self._writes[shard] = int(writes)
