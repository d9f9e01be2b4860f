"""The CPU seconds of a worker that counts backlogs of some periods to finals: `python -c ... BOOTSTRAP APP DIRECTORY`.

`bench.against` runs this text in several trees, so that each has its own modules. A survey runs for months, so most
periods are not the first one, in which tables of tokens grow.
"""

import resource
import sys
from pathlib import Path

from bench.stream import (  # type: ignore[attr-defined]  # of each tree
    KEY,
    ROWS,
    SESSION,
    close,
    fill,
    make,
    wait_for,
    workers,
)
from servers.settings import KafkaSettings

FRAMES, PERIODS = 2000, 4


def main(bootstrap: str, app: str, directory: str) -> None:
    kafka = KafkaSettings(bootstrap=bootstrap)
    topics = make(kafka, app)
    with workers(1, kafka, topics, KEY, Path(directory) / app, *SESSION) as (worker,):
        worker.wait_until_ready()
        for period in range(PERIODS):
            worker.pause()
            fill(kafka, topics, FRAMES, period)
            worker.resume()
            wait_for(worker, FRAMES * ROWS * (period + 1))
            close(kafka, topics, worker, period)
        worker.leave()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    main(*sys.argv[1:])
