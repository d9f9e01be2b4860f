"""The same on three brokers, of which one after the other is killed while reports arrive."""

import time
from collections.abc import Callable

from bench._processes import WorkerProcess
from tests.helpers.cluster import Cluster
from tests.helpers.counting import Counting
from tests.helpers.ordeal import Ordeal


class ClusterOrdeal(Ordeal):
    """Workers and a cluster of three. Every fault ends with all brokers running and in sync."""

    def __init__(self, cluster: Cluster, counting: Counting, seed: int, say: Callable[[str], None] = print) -> None:
        super().__init__(cluster, counting, seed, say)
        self._cluster = cluster
        self._faults = {
            "kill -9 of the leader of some reports": self._kill_leader,
            "kill -9 of the leader of some state": self._kill_state_leader,
            "kill -9 of two brokers of three": self._kill_two,
            "kill -9 of a leader and of a worker": self._kill_both,
        }

    def _kill_leader(self, _: WorkerProcess) -> None:
        self._kill_leader_of(self._topics.reports, self._topics.partitions)

    def _kill_state_leader(self, _: WorkerProcess) -> None:
        self._kill_leader_of(self._topics.counting_changelog, self._topics.partitions)

    def _kill_both(self, worker: WorkerProcess) -> None:
        worker.kill()
        self._kill_leader_of(self._topics.reports, self._topics.partitions)

    def _kill_two(self, _: WorkerProcess) -> None:
        for broker in self._random.sample(list(self._cluster.brokers.values()), 2):
            broker.kill()
        self._all_back()

    def _kill_leader_of(self, topic: str, partitions: int) -> None:
        self._cluster.leader(topic, self._random.randrange(partitions)).kill()
        time.sleep(self._random.uniform(1, 6))
        self._all_back()

    def _all_back(self) -> None:
        self._cluster.start()
        for topic in (self._topics.reports, self._topics.counting_changelog):
            self._cluster.wait_until_in_sync(topic, self._topics.partitions)
