"""10,000 reports of 50 devices through two gateways, while everything is killed: `python -m tests.chaos.gateways`."""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create
from tests.helpers.gateways import endure


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.gateways")
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="hearsay-gateways-"))
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)

    say(f"in {directory}")
    broker = KafkaBroker(directory / "kafka").start()
    try:
        topics = Topics("chaos", partitions=6, merge_partitions=2)
        create(KafkaSettings(bootstrap=broker.bootstrap), topics)
        endure(broker, topics, directory, options.reports, options.clients, options.kills, options.seed, say)
    finally:
        broker.stop()
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
