"""A hundred faults in a row on a broker of its own: `make chaos`, or `python -m tests.chaos --faults 20 --seed 7`.

The same seed sends the same reports and brings the same faults in the same order. What is left of a run that failed
(the broker's data, the workers' logs) stays in the directory that is printed first.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import tempfile
import time
from pathlib import Path

from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create
from tests.helpers.ordeal import Ordeal

REPORTS_PER_FAULT, FAULTS_PER_PERIOD = 10_000, 2


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
    broker = KafkaBroker(directory / "kafka").start()
    try:
        topics = Topics("chaos", partitions=6, merge_partitions=2)
        create(KafkaSettings(bootstrap=broker.bootstrap), topics)
        periods = max(1, options.faults // FAULTS_PER_PERIOD)
        ordeal = Ordeal(broker, topics, directory, options.seed, say, logs=True)
        ordeal.run(options.faults * REPORTS_PER_FAULT, periods, options.faults)
    finally:
        broker.stop()
    shutil.rmtree(directory)
    say(f"passed: {options.faults} faults, seed {options.seed}")


if __name__ == "__main__":
    main()
