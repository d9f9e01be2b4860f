"""A hundred faults in a row on servers of its own: `make chaos`, or `python -m tests.chaos --faults 20 --seed 7`.

Most of them happen to one broker, its logs and three workers; some to a cluster of three brokers; some to each of the
other parts. `--only large` runs one part. Gateways and edges have runs of their own: `make chaos-gateways` and
`make edge-chaos`. The same seed sends the same reports and brings the same faults in the same order. What is left of a
run that failed (the brokers' data, the workers' logs) stays in the directory that is printed first.
"""

import argparse
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from servers.kafka_broker import KafkaBroker
from servers.private_files import private_directory
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create
from tests.chaos.base import KafkaOrdeal
from tests.chaos.edge import EdgeOrdeal, Town
from tests.chaos.fleet import FleetOrdeal
from tests.chaos.large_surveys import LargeOrdeal
from tests.chaos.three_brokers import ClusterOrdeal
from tests.helpers.cluster import BROKERS, Cluster
from tests.helpers.counting import Counting
from tests.helpers.gateways import endure
from tests.helpers.ordeal import Ordeal

REPORTS_PER_FAULT, FAULTS_PER_PERIOD = 10_000, 2
Say = Callable[[str], None]


class Part(NamedTuple):
    """A part of the chaos that has topics of its own."""

    what: str
    ordeal: type[KafkaOrdeal]
    topics: Topics


PARTS = {
    "fleet": Part("faults of the Redis of a fleet", FleetOrdeal, Topics("fleet", 4, 1)),
    "large": Part("kills of workers that count large surveys", LargeOrdeal, Topics("large", 2, 1)),
}
WORKERS, BROKERS_PART, GATEWAYS, EDGE = "workers", "brokers", "gateways", "edge"
DEVICES, REPORTS_OF_DEVICES = 50, 10_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument(
        "--only", choices=[WORKERS, BROKERS_PART, GATEWAYS, EDGE, *PARTS], help="a part, with all the faults"
    )
    parser.add_argument("--people", type=int, default=100_000, help="of the town whose calls an edge reads")
    parser.add_argument("--days", type=int, default=30, help="of its calls")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="hearsay-chaos-"))
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)

    say(f"seed {options.seed}, {options.faults} faults, in {directory}")
    shares = {options.only: options.faults} if options.only else shared(options.faults)
    if options.only == EDGE:
        on_edges(directory, Town(options.people, options.days, options.seed), options.faults, options.seed, say)
    else:
        on_one_broker(directory / "one", shares, options.seed, say)
    if BROKERS_PART in shares:
        on_three_brokers(directory / "three", shares[BROKERS_PART], options.seed, say)
    shutil.rmtree(directory)
    say(f"passed: {options.faults} faults, seed {options.seed}")


def shared(faults: int) -> dict[str, int]:
    """How many faults each part has. Those of workers on one broker are what is left; the others have at least one."""
    shares = dict.fromkeys(PARTS, max(1, faults // 10))
    shares[BROKERS_PART] = max(1, faults // 7)
    return {WORKERS: max(0, faults - sum(shares.values()))} | shares


def on_one_broker(directory: Path, shares: Mapping[str, int], seed: int, say: Say) -> None:
    broker = KafkaBroker(directory / "kafka").start()
    kafka = KafkaSettings(bootstrap=broker.bootstrap)
    try:
        if faults := shares.get(WORKERS):
            say(f"{faults} faults of one broker, its logs and three workers")
            counting = made(kafka, Topics("chaos", partitions=6, merge_partitions=2), directory)
            ordeal = Ordeal(broker, counting, seed, say, logs=True)
            ordeal.run(faults * REPORTS_PER_FAULT, periods_of(faults), faults)
        if kills := shares.get(GATEWAYS):
            counting = made(kafka, Topics("chaos", partitions=6, merge_partitions=2), directory)
            endure(broker, counting, REPORTS_OF_DEVICES, DEVICES, kills, seed, say)
        for name, part in PARTS.items():
            if faults := shares.get(name):
                say(f"{faults} {part.what}")
                part.ordeal(made(kafka, part.topics, directory / name), seed, say).run(faults)
    finally:
        broker.stop()


def on_edges(directory: Path, town: Town, kills: int, seed: int, say: Say) -> None:
    say(f"{kills} kills while {town.people:,} people call for {town.days} days")
    broker = KafkaBroker(directory / "kafka").start()
    try:
        topics, place = Topics("edge", partitions=4, merge_partitions=1), private_directory(directory / "edge")
        counting = made(KafkaSettings(bootstrap=broker.bootstrap), topics, place)
        EdgeOrdeal(broker, counting, town, seed, say).run(kills)
    finally:
        broker.stop()


def on_three_brokers(directory: Path, faults: int, seed: int, say: Say) -> None:
    say(f"{faults} faults of three brokers")
    cluster = Cluster(directory)
    try:
        cluster.start()
        counting = made(cluster.settings, Topics("chaos", partitions=6, merge_partitions=2), directory, BROKERS)
        ClusterOrdeal(cluster, counting, seed, say).run(faults * REPORTS_PER_FAULT, periods_of(faults), faults)
    finally:
        cluster.stop()


def made(kafka: KafkaSettings, topics: Topics, directory: Path, replication: int = 1) -> Counting:
    create(kafka, topics, replication=replication)
    return Counting(kafka, topics, directory)


def periods_of(faults: int) -> int:
    return max(1, faults // FAULTS_PER_PERIOD)


if __name__ == "__main__":
    main()
