"""State as a Faust table: the changelog is the store, the values are bytes, the partition is in the key."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import faust
from faust.tables.manager import TableManager
from faust.types import TP

from stream_app.counting.state import partition_of_key
from stream_app.faust_app.crash import fatal

Recovered = Callable[[set[int]], Awaitable[None]]


class StateTable(faust.Table[bytes, bytes]):
    """A table whose keys name their partition. `recovered` is called with our partitions when they are recovered."""

    logger = logging.getLogger("faust.table")

    def __init__(self, app: faust.App, name: str, partitions: int, recovered: Recovered) -> None:
        super().__init__(app, name=name, partitions=partitions, key_type=bytes, value_type=bytes, store="memory://")
        self._recovered = recovered

    @property
    def changelog_name(self) -> str:
        return str(self.changelog_topic.get_topic_name())

    def partition_for_key(self, key: Any) -> int:
        return partition_of_key(key)

    def records(self, partition: int) -> dict[bytes, bytes]:
        """The state records of one of our partitions."""
        return {key: value for key, value in self.data.items() if partition_of_key(key) == partition}

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set or delete a record that the changelog has. Nothing is written to the changelog."""
        if value is None:
            self.data.pop(key, None)
        else:
            self.data[key] = value

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        """Read newly assigned partitions from the beginning: offsets that Faust kept from an earlier time are void."""
        await super().on_rebalance(assigned, revoked, newly_assigned, generation_id)
        recovery = cast(TableManager, self.app.tables).recovery
        for tp in newly_assigned:
            recovery.active_offsets.pop(tp, None)

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Drop records of other partitions, call `recovered`. Faust ignores errors here, so they end the process."""
        await super().on_recovery_completed(active_tps, standby_tps)
        ours = {tp.partition for tp in active_tps}
        for key in [key for key in self.data if partition_of_key(key) not in ours]:
            del self.data[key]
        with fatal(f"recovering {self.name}"):
            await self._recovered(ours)
