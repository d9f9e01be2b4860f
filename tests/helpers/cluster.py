"""Three real brokers on this machine: every record is on three of them, and confirmed by two."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kafka import KafkaAdminClient

from servers.kafka_broker import KafkaBroker
from servers.kafka_clients import connected
from servers.ports import free_port
from servers.settings import KafkaSettings
from tests.helpers.eventually import eventually

BROKERS = 3
REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


class Cluster:
    """Brokers 1 to 3, each in a directory of its own. Whoever kills one starts it again."""

    def __init__(self, directory: Path) -> None:
        numbers = range(1, BROKERS + 1)
        ports, controllers = {n: free_port() for n in numbers}, {n: free_port() for n in numbers}
        voters = ",".join(f"{n}@127.0.0.1:{port}" for n, port in controllers.items())
        self.brokers = {
            n: KafkaBroker(
                directory / f"broker-{n}",
                port=ports[n],
                settings={
                    **REPLICATED,
                    "node.id": str(n),
                    "controller.quorum.voters": voters,
                    "listeners": f"CLIENT://127.0.0.1:{ports[n]},CONTROLLER://127.0.0.1:{controllers[n]}",
                },
            )
            for n in numbers
        }
        for broker in self.brokers.values():
            broker.cluster_id = self.brokers[1].cluster_id

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @property
    def settings(self) -> KafkaSettings:
        return KafkaSettings(bootstrap=self.bootstrap)

    def start(self) -> "Cluster":
        """Start those that are not running: at once, because one alone has no quorum and does not answer."""
        before = os.umask(0)
        os.umask(before)
        with ThreadPoolExecutor(BROKERS) as starting:
            list(starting.map(lambda broker: broker.ensure(), self.brokers.values()))
        os.umask(before)  # each start sets and restores it for a moment, and so in a wrong order
        return self

    def stop(self) -> None:
        with ThreadPoolExecutor(BROKERS) as stopping:
            list(stopping.map(lambda broker: broker.kill(), self.brokers.values()))

    def leader(self, topic: str, partition: int) -> KafkaBroker:
        """The broker that leads a partition now."""
        return self.brokers[self._partition(topic, partition)["leader_id"]]

    def wait_until_in_sync(self, topic: str, partitions: int) -> None:
        """Return when every partition of a topic is on all brokers again."""
        eventually(lambda: all(len(self._partition(topic, p)["isr_nodes"]) == BROKERS for p in range(partitions)))

    def _partition(self, topic: str, partition: int) -> dict[str, object]:
        with connected(KafkaAdminClient, self.settings, 30) as admin:
            (described,) = admin.describe_topics([topic])
        return next(one for one in described["partitions"] if one["partition_index"] == partition)
