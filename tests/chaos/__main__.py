"""A hundred faults in a row on servers of its own: `make chaos`, or `python -m tests.chaos --faults 20 --seed 7`.

Most of them happen to one broker, its logs and three workers; some to a cluster of three brokers; some to the Redis of
a fleet. The same seed sends the same reports and brings the same faults in the same order. What is left of a run that
failed (the brokers' data, the workers' logs) stays in the directory that is printed first.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create
from tests.chaos.fleet import FleetOrdeal
from tests.chaos.large_surveys import LargeOrdeal
from tests.chaos.many_values import ManyValuesOrdeal
from tests.chaos.three_brokers import ClusterOrdeal
from tests.helpers.cluster import BROKERS, Cluster
from tests.helpers.ordeal import Ordeal

REPORTS_PER_FAULT, FAULTS_PER_PERIOD = 10_000, 2
Say = Callable[[str], None]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="hearsay-chaos-"))
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)

    say(f"seed {options.seed}, {options.faults} faults, in {directory}")
    with_redis, with_three = max(1, options.faults // 10), max(1, options.faults // 7)
    on_one_broker(directory / "one", options.faults - with_redis - with_three, with_redis, options.seed, say)
    on_three_brokers(directory / "three", with_three, options.seed, say)
    shutil.rmtree(directory)
    say(f"passed: {options.faults} faults, seed {options.seed}")


def on_one_broker(directory: Path, faults: int, with_redis: int, seed: int, say: Say) -> None:
    broker = KafkaBroker(directory / "kafka").start()
    kafka = KafkaSettings(bootstrap=broker.bootstrap)
    try:
        if faults > 0:
            say(f"{faults} faults of one broker, its logs and three workers")
            topics = made(kafka, Topics("chaos", partitions=6, merge_partitions=2))
            ordeal = Ordeal(broker, topics, directory, seed, say, logs=True)
            ordeal.run(faults * REPORTS_PER_FAULT, periods_of(faults), faults)
        say(f"{with_redis} faults of the Redis of a fleet")
        topics = made(kafka, Topics("fleet", partitions=4, merge_partitions=1))
        FleetOrdeal(kafka, topics, directory / "fleet", seed, say).run(with_redis)
        say(f"{with_redis} kills of workers that count large surveys")
        topics = made(kafka, Topics("large", partitions=2, merge_partitions=1))
        LargeOrdeal(kafka, topics, directory / "large", seed, say).run(with_redis)
        say("kills of workers that count very many values")
        topics = made(kafka, Topics("many", partitions=4, merge_partitions=1))
        ManyValuesOrdeal(kafka, topics, directory / "many", seed, say).run(max(1, with_redis // 2))
    finally:
        broker.stop()


def on_three_brokers(directory: Path, faults: int, seed: int, say: Say) -> None:
    say(f"{faults} faults of three brokers")
    cluster = Cluster(directory)
    try:
        cluster.start()
        topics = made(cluster.settings, Topics("chaos", partitions=6, merge_partitions=2), BROKERS)
        ClusterOrdeal(cluster, topics, directory, seed, say).run(faults * REPORTS_PER_FAULT, periods_of(faults), faults)
    finally:
        cluster.stop()


def made(kafka: KafkaSettings, topics: Topics, replication: int = 1) -> Topics:
    create(kafka, topics, replication=replication)
    return topics


def periods_of(faults: int) -> int:
    return max(1, faults // FAULTS_PER_PERIOD)


if __name__ == "__main__":
    main()
