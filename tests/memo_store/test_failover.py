"""A fleet whose Redis dies and is replaced by its replica: every device is counted once, with the same memos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memo_store.store import MemoStore
from producers.simulation import Simulation
from protocols.respondent import Respondent
from tests.helpers.failover import ReplicatedRedis
from tests.helpers.sinks import KeepingSink
from tests.producers.populations import CLOCK_KEY, KEYRING, Alternating, counted, scheme


class Disturbed(KeepingSink):
    """Keeps records, and lets something happen before some of them."""

    def __init__(self, partitions: int, happens: dict[int, Callable[[], None]]) -> None:
        super().__init__(partitions)
        self._happens = happens

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        self._happens.get(len(self.records), lambda: None)()
        super().send(partition, content_type, value)


def test_a_replica_takes_over_under_a_fleet_and_every_device_is_counted_once(redis_url: str, tmp_path: Path) -> None:
    """Failure would look like: a device that is counted twice or not at all, or has another memo afterwards."""
    survey, world = scheme(), Alternating(2000, 6)
    expected = KeepingSink(2)
    with MemoStore(redis_url) as store:
        Simulation(store.survey(Respondent(survey, KEYRING)), expected, world, CLOCK_KEY).run()
    redis = ReplicatedRedis(tmp_path).start()
    try:
        sink = Disturbed(2, {5: redis.fail_over, 11: redis.fail_over, 17: redis.fill_disk})
        with MemoStore(redis.url) as store:
            memos = store.survey(Respondent(survey, KEYRING))
            Simulation(memos, sink, world, CLOCK_KEY).run()
            losses = memos.presence_losses
    finally:
        redis.stop()
    assert len(sink.records) > 17, "all of it happened"
    assert counted(sink, survey, tmp_path / "counted") == [len(world.presences(p).devices) for p in range(6)]
    if not losses:  # the replica had everything: then nobody can tell that it took over
        assert sink.records == expected.records
